// Models: the list, and one with its versions and aliases.
import { useState } from "preact/hooks";
import { get, part, put, remove } from "./api.mjs";
import { Fault, Loaded, Page, Table, curl, html, useAction, useLoaded, usePages, when } from "./view.mjs";

const SHOWN = 20;

export function Models() {
  const [list, pager] = usePages("/v1/models?limit=50", get);
  return html`<${Page} title="Models" lead="A model is a name with immutable versions. An alias, such as champion, points at the version that predicts." how=${HOW.list}
      actions=${html`<a class="button" href="#/train">Train a model</a>`}>
    <${Loaded} from=${list}>${(page) => html`<${Table} caption="Models" rows=${page.items} columns=${[
      { name: "Model", show: (one) => html`<a href=${`#/models/${part(one.name)}`}>${one.name}</a>` },
      { name: "Versions", number: true, show: (one) => one.versions.length },
      { name: "Newest", number: true, show: (one) => html`<a href=${`#/models/${part(one.name)}/${one.latest_version}`}>${one.latest_version}</a>` },
      { name: "Aliases", show: (one) => one.aliases.map((alias) => `${alias.alias} → ${alias.version}`).join(", ") },
      { name: "Created", show: (one) => when(one.created_at) },
    ]} />${pager}`}</${Loaded}>
  </${Page}>`;
}

/** Moves an alias, unless somebody else has moved it since it was read. */
export const promote = (model, version, alias = "champion") => {
  const before = model.aliases.find((one) => one.alias === alias);
  return put(`/v1/models/${part(model.name)}/aliases/${part(alias)}`, { version }, { headers: before ? { "If-Match": before.etag } : {} });
};

const read = async (name, before, signal) => {
  const model = await get(`/v1/models/${part(name)}`, { signal });
  const numbers = [...model.versions].reverse().slice(before, before + SHOWN);
  const versions = await Promise.all(numbers.map((one) => get(`/v1/models/${part(name)}/versions/${one}`, { signal })));
  return { ...model, versions, count: model.versions.length };
};

export function Model({ named: [name] }) {
  const [before, skip] = useState(0);
  const loaded = useLoaded((signal) => read(name, before, signal), [name, before]);
  const [act, { error, busy }] = useAction(async (change) => { await change(); loaded.reload(); });
  const drop = () => confirm(`Delete ${name} with all its versions?`) && act(async () => { await remove(`/v1/models/${part(name)}`); location.hash = "#/models"; });
  return html`<${Loaded} from=${loaded}>${(model) => html`
    <${Page} title=${model.name} how=${HOW.one(model)} actions=${html`
        <a class="button" href=${`#/models/${part(name)}/${model.latest_version}/try`}>Try it</a>
        <a class="button quiet" href=${`#/compare?model=${part(name)}`}>Compare</a>
        <button class="quiet" onClick=${drop} disabled=${busy}>Delete</button>`}>
      <${Fault} error=${error} />
      <${Table} caption="Versions" rows=${model.versions} columns=${[
        { name: "Version", show: (one) => html`<a href=${`#/models/${part(name)}/${one.version}`}>${one.version}</a>` },
        { name: "Algorithm", show: (one) => one.algorithm },
        { name: "Task", show: (one) => one.task },
        { name: "Metric", show: (one) => one.metrics[0] && `${one.metrics[0].name} ${one.metrics[0].display}` },
        { name: "Aliases", show: (one) => model.aliases.filter((alias) => alias.version === one.version).map((alias) => html`<span class="alias">${alias.alias}</span>`) },
        { name: "Created", show: (one) => when(one.created_at) },
        { name: "", show: (one) => html`<button class="quiet" disabled=${busy || model.aliases.some((alias) => alias.alias === "champion" && alias.version === one.version)}
          onClick=${() => act(() => promote(model, one.version))} aria-label=${`Promote version ${one.version}`}>Promote</button>` },
      ]} />
      ${model.count > SHOWN && html`<nav class="pager" aria-label="Pages of versions">
        <button class="quiet" disabled=${before === 0} onClick=${() => skip(before - SHOWN)}>Newer</button>
        <button class="quiet" disabled=${before + SHOWN >= model.count} onClick=${() => skip(before + SHOWN)}>Older</button>
        <span class="soft">${`${before + 1} to ${Math.min(before + SHOWN, model.count)} of ${model.count}`}</span></nav>`}
      ${model.aliases.map((one) => html`<${Moves} key=${one.etag} model=${name} alias=${one.alias} />`)}
    </${Page}>`}</${Loaded}>`;
}

/** Moves of an alias, newest first. */
function Moves({ model, alias }) {
  const [list, pager] = usePages(`/v1/models/${part(model)}/aliases/${part(alias)}/history?limit=20`, get);
  return html`<h2>${`Moves of ${alias}`}</h2>
    <${Loaded} from=${list}>${(page) => html`<${Table} caption=${`Moves of ${alias}`} rows=${page.items} columns=${[
      { name: "Time", show: (one) => when(one.at) },
      { name: "Version", number: true, show: (one) => one.version ?? "none" },
      { name: "Request", show: (one) => html`<code>${one.request_id}</code>` },
    ]} />${pager}`}</${Loaded}>`;
}

const HOW = {
  list: { curl: curl("/v1/models"), Python: "import valiant\n\nvaliant.connect().models()", Terminal: "valiant models" },
  one: (model) => ({
    curl: curl(`/v1/models/${model.name}/aliases/champion`, { version: model.latest_version }, "PUT"),
    Python: `import valiant\n\nmodel = valiant.connect().model(${JSON.stringify(model.name)})\nmodel.alias("champion").move(${model.latest_version})`,
    Terminal: `valiant models ${model.name}`,
  }),
};
