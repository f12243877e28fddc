// Calculators of learning theory: a form of each, its results and its curves.
import { useState } from "preact/hooks";
import { get, part, post } from "../parts/api.mjs";
import { Lines } from "../charts/small.mjs";
import { Field, below, changed, faultsBelow } from "../parts/form.mjs";
import { Copied, Facts, Fault, Loaded, Page, curl, html, number, useAction, useLoaded } from "../parts/view.mjs";

export function Theory({ query }) {
  const loaded = useLoaded(async (signal) => {
    const [list, document] = await Promise.all([get("/v1/theory", { signal }), get("/openapi.json", { signal })]);
    return { cards: list.items, document };
  }, []);
  return html`<${Page} title="Theory" lead="What rows can promise, without a model: sample sizes, bounds, dimensions."
      how=${HOW}>
    <${Loaded} from=${loaded}>${({ cards, document }) => html`<${Calculator} cards=${cards} document=${document}
        first=${query.get("name") || cards[0].name} />`}</${Loaded}>
  </${Page}>`;
}

/** The request of a calculator: its schema, and the values of its example. */
const requestOf = (document, name) => {
  const { schema, example } = document.paths[`/v1/theory/${name}`].post.requestBody.content["application/json"];
  return {
    schema: schema.$ref ? document.components.schemas[schema.$ref.split("/").pop()] : schema,
    example: example || {},
  };
};

function Calculator({ cards, document, first }) {
  const [name, choose] = useState(first),
    card = cards.find((one) => one.name === name);
  const { schema, example } = requestOf(document, name);
  const [values, set] = useState(example);
  const [found, show] = useState();
  const [run, { error, busy }] = useAction(async (event) => {
    event.preventDefault();
    show(await post(`/v1/theory/${part(name)}`, values));
  });
  const pick = (other) => {
    choose(other);
    set(requestOf(document, other).example);
    show();
  };
  const faults = faultsBelow(error?.errors || [], "");
  const change = (field, value) => set((before) => changed(before, field, value));
  return html`<label class="inline">Calculator <select value=${name} onChange=${(event) => pick(event.target.value)}>
    ${cards.map((one) => html`<option value=${one.name}>${one.title}</option>`)}</select></label>
    <p class="lead">${card.description.split("\n\n").slice(1, 2)}</p>
    <form onSubmit=${run}>
      <div class="fields">${Object.entries(schema.properties).map(
        ([field, one]) => html`<${Field} key=${name + field} name=${field} schema=${one} value=${values[field]}
        faults=${below(faults, field)} change=${(value) => change(field, value)} />`,
      )}</div>
      <p><button disabled=${busy}>Calculate</button></p>
    </form>
    <${Fault} error=${error} />
    ${
      found &&
      html`<section aria-live="polite"><h2>Result</h2>
      <${Facts} of=${Object.fromEntries(
        Object.entries(found)
          .filter(([, value]) => typeof value !== "object")
          .map(([field, value]) => [field.replaceAll("_", " "), number(value)]),
      )} />
      ${found.curves?.map((one) => html`<${Lines} title=${one.title} x=${one.x_label}
          series=${one.series.map(({ name: label, y }) => ({ name: label, x: one.x, y }))} />`)}
      <details><summary>All of it</summary><${Copied} text=${JSON.stringify(found, null, 1)} /></details>
    </section>`
    }`;
}

const HOW = {
  curl: curl("/v1/theory/pac", { class_size: 1000, epsilon: 0.1, delta: 0.05 }),
  Python: 'import valiant\n\nvaliant.connect().calculate("pac", class_size=1000, epsilon=0.1, delta=0.05)',
};
