// Cards of the clusters of a version, with names that people give them.
import { useState } from "preact/hooks";
import { get, part, post, put } from "../parts/api.mjs";
import { Fault, Loaded, html, number, useAction, useLoaded } from "../parts/view.mjs";

const MOST = 24;

export function Clusters({ model, version }) {
  const names = `/v1/models/${part(model)}/versions/${version}/names`;
  const loaded = useLoaded(
    async (signal) => {
      const [cards, given] = await Promise.all([
        post(`/v1/models/${part(model)}/clusters?version=${version}`, { columns: 3 }, { signal }),
        get(names, { signal }).catch(() => ({ names: [] })),
      ]);
      return { cards: cards.clusters, given: given.names };
    },
    [model, version],
  );
  const [rename, { error }] = useAction(async (cluster, name) => {
    const others = loaded.value.given
      .filter((one) => one.cluster !== cluster)
      .map(({ cluster: place, name: text }) => ({ cluster: place, name: text }));
    await put(names, { names: name ? [...others, { cluster, name }] : others });
    loaded.reload();
  });
  return html`<section><h2>Clusters</h2><${Fault} error=${error} />
    <${Loaded} from=${loaded}>${({
      cards,
    }) => html`<ul class="sheets">${cards.slice(0, MOST).map((one) => html`<${Card} key=${one.cluster} of=${one}
        rename=${rename} />`)}</ul>
      ${cards.length > MOST && html`<p class="soft">The first ${MOST} of ${cards.length} clusters.</p>`}`}</${Loaded}>
  </section>`;
}

function Card({ of: one, rename }) {
  const [name, type] = useState(one.name || "");
  return html`<li class="card">
    <h3 dir="auto">${one.name || `Cluster ${one.cluster}`}</h3>
    <p class="soft">${`${number(one.size)} rows, ${number(Number((100 * one.share).toPrecision(3)))} %`}</p>
    ${one.distinctive?.length > 0 && html`<ul class="plain">${one.distinctive.slice(0, 3).map((column) => html`<li
        dir="auto">${column.column}${column.category === undefined ? "" : ` is ${column.category}`}:${" "}
        ${`${number(column.inside)} here, ${number(column.outside)} elsewhere`}</li>`)}</ul>`}
    <form class="row" onSubmit=${(event) => {
      event.preventDefault();
      rename(one.cluster, name.trim());
    }}>
      <label>Name<input value=${name} maxlength="100" onInput=${(event) => type(event.target.value)} /></label><button
          class="quiet">Save</button></form>
  </li>`;
}
