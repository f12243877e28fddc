// Columns of a dataset before a training: which are used, as which kind, and in which role.
import { useState } from "preact/hooks";
import { html, number } from "./view.mjs";

const MAX_SHOWN = 60;

/**
 * The choices about columns; each leaves the others at their defaults.
 * @typedef {object} Choices
 * @property {string[] | null} features null: those that the service takes
 * @property {Record<string, string>} kinds kinds other than those of the dataset
 * @property {Record<string, string>} roles column by role: weights, sigma, item, group or time
 * @property {string[]} texts columns whose terms are learned from
 */

/** @type {Choices} */
export const NO_CHOICES = { features: null, kinds: {}, roles: {}, texts: [] };

const ROLES = {
  feature: "feature",
  none: "left out",
  target: "target",
  weights: "weight of the row",
  group: "group: rows stay together",
  time: "time: later rows are tested",
  sigma: "error of the target",
  exposure: "exposure of the row",
  offset: "offset of the score",
  item: "name of the row",
  text: "text to learn from",
};

/** Roles that are a field of the request, with the name of the column. */
const OWN_FIELDS = ["weights", "group", "time", "sigma", "exposure", "offset", "item"];

/** Kinds that a column of a kind can be used as. */
const KINDS = {
  numeric: { categorical: "categories" },
  boolean: { categorical: "categories" },
  categorical: { numeric: "numbers", "numeric:comma": "numbers, decimal comma", date: "dates", text: "text" },
  text: {
    categorical: "categories",
    numeric: "numbers",
    "numeric:comma": "numbers, decimal comma",
    "date:DMY": "dates, day first",
    "date:MDY": "dates, month first",
  },
  datetime: { categorical: "categories" },
};

/** Names of the columns that are learned from, as far as the page knows without the service. */
export const usualFeatures = (columns, target, { roles, texts }) => {
  const taken = new Set([target, ...Object.values(roles)]);
  return columns
    .filter((one) => !taken.has(one.name) && !one.identifier_like && (one.kind !== "text" || texts.includes(one.name)))
    .map((one) => one.name);
};

/** Parts of a request that the choices are. */
export const asRequest = ({ features, kinds, roles, texts }) => {
  const { group, time, ...named } = roles;
  const validation = { ...(group && { group }), ...(time && { time }) };
  return {
    ...named,
    ...(features && { features }),
    ...(Object.keys(kinds).length && { kinds }),
    ...(texts.length && { preprocessing: { text: Object.fromEntries(texts.map((name) => [name, {}])) } }),
    ...(Object.keys(validation).length && { validation }),
  };
};

/** @returns {Choices} those of a request */
export const ofRequest = ({ features, kinds, validation, preprocessing, ...request }) => {
  const { weights, sigma, exposure, offset, item } = request;
  const roles = { weights, sigma, exposure, offset, item, group: validation?.group, time: validation?.time };
  return {
    features: features ?? null,
    kinds: kinds ?? {},
    roles: Object.fromEntries(Object.entries(roles).filter(([, name]) => name)),
    texts: Object.keys(preprocessing?.text ?? {}),
  };
};

/**
 * @param {object} props
 * @param {any[]} props.columns data sheets, at least names and kinds
 * @param {Choices} props.choices
 * @param {string[]} props.used names of the columns that are learned from now
 * @param {(choices: Choices, target?: string) => void} props.change with the new target where it changes
 */
export function ColumnTable({ columns, target, choices, used, change }) {
  const [count, show] = useState(MAX_SHOWN);
  const roleOf = (name) => {
    if (name === target) return "target";
    const [role] = Object.entries(choices.roles).find(([, column]) => column === name) || [];
    return role ?? (choices.texts.includes(name) ? "text" : used.includes(name) ? "feature" : "none");
  };
  const assign = (name, role) => {
    const roles = Object.fromEntries(Object.entries(choices.roles).filter(([, column]) => column !== name));
    const texts = choices.texts.filter((one) => one !== name);
    const others = (choices.features ?? used).filter((one) => one !== name);
    const isFeature = role === "feature" || role === "text";
    const needsList = choices.features || role === "none" || role === "feature";
    change(
      {
        ...choices,
        roles: OWN_FIELDS.includes(role) ? { ...roles, [role]: name } : roles,
        texts: role === "text" ? [...texts, name] : texts,
        features: needsList ? inOrder(columns, isFeature ? [...others, name] : others) : null,
      },
      role === "target" ? name : roleOf(name) === "target" ? "" : undefined,
    );
  };
  const use = (name, kind) => {
    const { [name]: _, ...kinds } = choices.kinds;
    change({ ...choices, kinds: kind ? { ...kinds, [name]: kind } : kinds });
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Columns">
    <table class="columns"><caption class="hidden">Columns</caption>
      <thead><tr>${["Column", "Role", "Kind", "Different", "Missing", "Remarks"].map(
        (name) => html`<th scope="col" class=${["Different", "Missing"].includes(name) ? "number" : ""}>${name}</th>`,
      )}</tr></thead>
      <tbody>${columns.slice(0, count).map(
        (one) => html`<tr key=${one.name}>
          <th scope="row" dir="auto">${one.name}</th>
          <td><select aria-label=${`Role of ${one.name}`} value=${roleOf(one.name)}
            onChange=${(event) => assign(one.name, event.target.value)}>
            ${rolesFor(one).map((role) => html`<option value=${role}>${ROLES[role]}</option>`)}</select></td>
          <td><select aria-label=${`Kind of ${one.name}`} value=${choices.kinds[one.name] ?? ""}
            onChange=${(event) => use(one.name, event.target.value)}>
            <option value="">${one.kind}</option>
            ${Object.entries(KINDS[one.kind] ?? {}).map(([kind, text]) => html`<option value=${kind}>${text}</option>`)}
          </select></td>
          <td class="number">${one.distinct === undefined ? "" : number(one.distinct)}</td>
          <td class="number">${one.missing ? number(one.missing) : ""}</td>
          <td class="wrap soft">${remarks(one)}</td>
        </tr>`,
      )}</tbody>
    </table></div>
    ${columns.length > count && html`<button type="button" class="quiet" onClick=${() => show(count + MAX_SHOWN)}>
      ${`Show more of ${number(columns.length)} columns`}</button>`}`;
}

const rolesFor = ({ kind }) =>
  Object.keys(ROLES).filter((role) => {
    if (role === "text") return kind === "text" || kind === "categorical";
    if (["weights", "sigma", "exposure", "offset"].includes(role)) return kind === "numeric";
    return role !== "time" || kind === "numeric" || kind === "datetime";
  });

const inOrder = (columns, names) => columns.map((one) => one.name).filter((name) => names.includes(name));

/** What the data sheet remarks, and how its most frequent values are shared out. */
const remarks = (one) => {
  const top = one.kind === "numeric" || one.identifier_like ? [] : (one.top_levels ?? []).slice(0, 3);
  const shares = top.map(({ value, count }) => `${value} ${Math.round((100 * count) / one.count)} %`);
  return [shares.join(", "), ...(one.warnings ?? [])].filter(Boolean).join(". ");
};
