// Models: the list, and one with its versions and aliases.
import { useState } from "preact/hooks";
import { get, part, promote, readAll, remove } from "../parts/api.mjs";
import { Grid } from "../parts/grid.mjs";
import { Scaled, firstMetric, metricName } from "../parts/metrics.mjs";
import {
  Fault, Loaded, Page, Table, curl, html, useAction, useAll, useLoaded, usePages, when,
} from "../parts/view.mjs";

export function Models() {
  const list = useAll("/v1/models");
  return html`<${Page} title="Models" how=${HOW.list}
      lead="A model is a name with immutable versions. An alias, such as champion, points at the version that predicts."
      actions=${html`<a class="button" href="#/train">Train a model</a>`}>
    <${Loaded} from=${list}>${(rows) => html`
      <${Grid} caption="Models" rows=${rows} rowKey=${(one) => one.name} columns=${COLUMNS} />`}</${Loaded}>
  </${Page}>`;
}

const COLUMNS = [
  {
    name: "Model",
    value: (one) => one.name,
    show: (one) => html`<a href=${`#/models/${part(one.name)}`}>${one.name}</a>`,
  },
  { name: "Versions", number: true, value: (one) => one.versions.length },
  {
    name: "Newest",
    number: true,
    value: (one) => one.latest_version,
    show: (one) => html`<a href=${`#/models/${part(one.name)}/${one.latest_version}`}>${one.latest_version}</a>`,
  },
  {
    name: "Aliases",
    value: (one) => one.aliases.map((alias) => `${alias.alias} → ${alias.version}`).join(", "),
  },
  { name: "Created", value: (one) => one.created_at, show: (one) => when(one.created_at) },
];

const read = async (name, signal) => {
  const [model, versions] = await Promise.all([
    get(`/v1/models/${part(name)}`, { signal }),
    readAll(`/v1/versions?model=${part(name)}`, signal),
  ]);
  return { model, versions };
};

export function Model({ named: [name] }) {
  const loaded = useLoaded((signal) => read(name, signal), [name]);
  const [ticked, tick] = useState(new Set());
  const [act, { error, busy }] = useAction(async (change) => {
    await change();
    loaded.reload();
  });
  const drop = () =>
    confirm(`Delete ${name} with all its versions?`) &&
    act(async () => {
      await remove(`/v1/models/${part(name)}`);
      location.hash = "#/models";
    });
  const compared = ticked.size > 1 ? `versions=${part([...ticked].join(","))}` : `model=${part(name)}`;
  return html`<${Loaded} from=${loaded}>${({ model, versions }) => html`
    <${Page} title=${model.name} how=${HOW.one(model)} actions=${html`
        <a class="button" href=${`#/models/${part(name)}/${model.latest_version}/try`}>Try it</a>
        <a class="button quiet" href=${`#/compare?${compared}`}>Compare</a>
        <button class="quiet" onClick=${drop} disabled=${busy}>Delete</button>`}>
      <${Fault} error=${error} />
      <${Grid} caption="Versions" rows=${versions} rowKey=${(one) => `${name}.${one.version}`}
        ticked=${ticked} tick=${tick}
        columns=${versionColumns(busy, (one) => act(() => promote(model, one.version)))} />
      ${model.aliases.map((one) => html`<${Moves} key=${one.etag} model=${name} alias=${one.alias} />`)}
    </${Page}>`}</${Loaded}>`;
}

const versionColumns = (busy, move) => [
  {
    name: "Version",
    value: (one) => one.version,
    show: (one) => html`<a href=${`#/models/${part(one.model)}/${one.version}`}>${one.version}</a>`,
  },
  { name: "Algorithm", value: (one) => one.algorithm },
  { name: "Task", value: (one) => one.task },
  {
    name: "Metric",
    value: (one) => firstMetric(one.task, one.metrics)?.value ?? undefined,
    show: (one) => {
      const metric = firstMetric(one.task, one.metrics);
      return metric && html`<span class="scaled">${`${metricName(metric)} ${metric.display}`}
        <${Scaled} metric=${metric} brief /></span>`;
    },
  },
  {
    name: "Aliases",
    value: (one) => one.aliases.join(" "),
    show: (one) => one.aliases.map((alias) => html`<span class="alias">${alias}</span>`),
  },
  { name: "Created", value: (one) => one.created_at, show: (one) => when(one.created_at) },
  {
    name: "",
    show: (one) => html`<button class="quiet" disabled=${busy || one.aliases.includes("champion")}
      onClick=${() => move(one)} aria-label=${`Promote version ${one.version}`}>Promote</button>`,
  },
];

/** Moves of an alias, newest first. */
function Moves({ model, alias }) {
  const [list, pager] = usePages(`/v1/models/${part(model)}/aliases/${part(alias)}/history?limit=20`, get);
  return html`<h2>${`Moves of ${alias}`}</h2>
    <${Loaded} from=${list}>${(page) =>
      html`<${Table} caption=${`Moves of ${alias}`} rows=${page.items} columns=${[
        { name: "Time", show: (one) => when(one.at) },
        { name: "Version", number: true, show: (one) => one.version ?? "none" },
        { name: "Request", show: (one) => html`<code>${one.request_id}</code>` },
      ]} />${pager}`}</${Loaded}>`;
}

const HOW = {
  list: {
    curl: curl("/v1/models"),
    Python: "import valiant\n\nvaliant.connect().models()",
    Terminal: "valiant models",
  },
  one: (model) => ({
    curl: curl(`/v1/models/${model.name}/aliases/champion`, { version: model.latest_version }, "PUT"),
    Python: [
      "import valiant\n",
      `model = valiant.connect().model(${JSON.stringify(model.name)})`,
      `model.alias("champion").move(${model.latest_version})`,
    ].join("\n"),
    Terminal: `valiant models ${model.name}`,
  }),
};
