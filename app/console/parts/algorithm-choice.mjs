// The choice of algorithms: one from a list by what fits the target, or several that are tried on the same folds.
import { useState } from "preact/hooks";
import { html } from "./view.mjs";

/** Algorithms that are tried first, by the task; of several the first three are ticked. */
export const STARRED = {
  classification: ["logistic", "random_forest", "gradient_boosting", "knn", "mlp"],
  regression: ["ridge", "random_forest", "gradient_boosting", "knn", "gaussian_process"],
  none: ["kmeans", "gmm", "agglomerative", "pca", "som"],
};
export const TICKED = 3;

/** What a target stands for, as the service would take it: null without one. */
export const taskOf = (column) => {
  if (!column) return "none";
  return column.kind === "numeric" && (column.distinct ?? Infinity) > 2 ? "regression" : "classification";
};

const fits = (card, task) =>
  task === "none"
    ? Object.values(card.targets).some((use) => use !== "needed")
    : card.tasks.includes(task) && card.targets[task] !== "never";

const simple = (text) => text.toLowerCase().replace(/[\s_-]/g, "");

/** Whether a card has the words of a search: in its name, the names that others have for it, or its title. */
const isFound = (card, search) => {
  const words = simple(search);
  if (!words) return true;
  return [card.name, card.title, ...card.other_names].some((text) => simple(text).includes(words));
};

/** Cards by group: those that are tried first, those that fit, and the others. */
function groupsOf(cards, task, search) {
  const found = cards.filter((card) => isFound(card, search));
  const first = STARRED[task].map((name) => found.find((card) => card.name === name)).filter(Boolean);
  const rest = found.filter((card) => !first.includes(card));
  return {
    "★ Tried first": first,
    [task === "none" ? "Need no target" : "Fit the target"]: rest.filter((card) => fits(card, task)),
    Others: rest.filter((card) => !fits(card, task)),
  };
}

const SearchBox = ({ search, find }) => html`<label class="field">Search by any name
  <input type="search" value=${search} placeholder="such as xgboost" onInput=${(event) => find(event.target.value)} />
</label>`;

export function OneAlgorithm({ cards, task, name, choose, children }) {
  const [search, find] = useState("");
  const groups = groupsOf(cards, task, search);
  const seek = (text) => {
    find(text);
    const [first] = Object.values(groupsOf(cards, task, text)).flat();
    if (text && first) choose(first.name);
  };
  const card = cards.find((one) => one.name === name);
  return html`<div class="field"><label for="algorithm">Algorithm</label>
      <select id="algorithm" value=${name} onChange=${(event) => choose(event.target.value)}>
        ${Object.entries(groups).map(
          ([title, some]) => some.length > 0 && html`<optgroup label=${title}>
            ${some.map((one) => html`<option value=${one.name}>${one.name}</option>`)}</optgroup>`,
        )}</select>
      <p class="help">${card?.gist} <a href=${`/docs/guide/algorithms/${name}`}>Read more</a></p>${children}</div>
    <${SearchBox} search=${search} find=${seek} />`;
}

export function SeveralAlgorithms({ cards, task, ticked, tick, children }) {
  const [search, find] = useState("");
  const { Others: _, ...groups } = groupsOf(cards, task, search);
  const toggle = (name) => tick(ticked.includes(name) ? ticked.filter((one) => one !== name) : [...ticked, name]);
  const box = (card) => html`<label title=${card.gist}><input type="checkbox" checked=${ticked.includes(card.name)}
    onChange=${() => toggle(card.name)} /> ${card.name}</label>`;
  return html`<fieldset class="wide"><legend>Algorithms to try, on the same folds</legend>
    ${Object.entries(groups).map(
      ([title, some], place) => some.length > 0 && html`<details open=${place === 0 || search}>
        <summary>${title}</summary><div class="checks">${some.map(box)}</div></details>`,
    )}
    <${SearchBox} search=${search} find=${find} />${children}</fieldset>`;
}
