// Datasets: the list with uploads, and one with its data sheet and its rows.
import { useState } from "preact/hooks";
import { get, part, remove, uploadChosen } from "../parts/api.mjs";
import { Histogram } from "../charts/small.mjs";
import { Grid } from "../parts/grid.mjs";
import { DropArea, FileButton } from "../parts/upload.mjs";
import {
  Facts, Fault, Loaded, Page, Table, curl, html, number, size, useAction, useAll, useLoaded, when,
} from "../parts/view.mjs";
import { FirstVisit } from "./home.mjs";

const PAGE_ROWS = 100;
const MAX_SHEETS = 60;

export function Datasets() {
  const list = useAll("/v1/datasets?sheets=false");
  const [send, { busy, error }] = useAction(async (file) => {
    location.hash = `#/datasets/${(await uploadChosen(file)).id}`;
  });
  return html`<${Page} title="Datasets" how=${HOW.list}
      lead="A dataset is a table that was uploaded once and does not change: CSV, Excel, JSON, Parquet, Arrow, ARFF or
        LibSVM, also compressed or in a zip archive."
      actions=${html`<${FileButton} take=${send} busy=${busy}>Upload a table</${FileButton}>`}>
    <${Fault} error=${error} />
    <${DropArea} take=${send}>
      <${Loaded} from=${list}>${(rows) =>
        rows.length === 0
          ? html`<${FirstVisit} />`
          : html`<${Grid} caption="Datasets" rows=${rows} rowKey=${(one) => one.id} columns=${COLUMNS} />`}</${Loaded}>
    </${DropArea}>
  </${Page}>`;
}

const COLUMNS = [
  {
    name: "Name",
    value: (one) => one.name,
    show: (one) => html`<a href=${`#/datasets/${one.id}`} dir="auto">${one.name}</a>`,
  },
  { name: "Rows", number: true, value: (one) => one.rows },
  { name: "Columns", number: true, value: (one) => one.columns.length },
  { name: "Size", number: true, value: (one) => one.size_bytes, show: (one) => size(one.size_bytes) },
  { name: "Format", value: (one) => one.file_format },
  { name: "Uploaded", value: (one) => one.created_at, show: (one) => when(one.created_at) },
];

export function Dataset({ named: [id] }) {
  const loaded = useLoaded((signal) => get(`/v1/datasets/${part(id)}?sheets=false`, { signal }), [id]);
  const [drop, { error }] = useAction(async () => {
    if (!confirm("Delete this dataset? Models that were trained on it stay.")) return;
    await remove(`/v1/datasets/${part(id)}`);
    location.hash = "#/datasets";
  });
  return html`<${Loaded} from=${loaded}>${(one) => html`
    <${Page} title=${one.name} how=${HOW.one(one)} actions=${html`
        <a class="button" href=${`#/train?dataset=${one.id}`}>Train a model</a>
        <a class="button quiet" href=${`#/datasets/${one.id}/difference`}>Compare</a>
        <a class="button quiet" href=${`/v1/datasets/${one.id}/file`} download=${`${one.name}.csv`}>Download</a>
        <button class="quiet" onClick=${drop}>Delete</button>`}>
      <${Fault} error=${error} />
      <${Facts} of=${{
        Rows: number(one.rows),
        Columns: number(one.columns.length),
        Size: size(one.size_bytes),
        Uploaded: when(one.created_at),
        Id: one.id,
      }} />
      ${one.warnings?.map((text) => html`<p class="warning">${text}</p>`)}
      <${Sheets} dataset=${one.id} />
      <${Rows} dataset=${one} />
      <${Trained} dataset=${one.id} />
    </${Page}>`}</${Loaded}>`;
}

/** Versions that were trained on it. */
function Trained({ dataset }) {
  const loaded = useLoaded((signal) => get(`/v1/versions?limit=20&dataset=${part(dataset)}`, { signal }), [dataset]);
  if (!loaded.value?.items.length) return null;
  return html`<section><h2>Models of this dataset</h2>
    <${Table} caption="Versions that were trained on the dataset" rows=${loaded.value.items} columns=${[
      {
        name: "Version",
        show: ({ model, version }) => html`<a href=${`#/models/${part(model)}/${version}`}>${`${model} ${version}`}
          </a>`,
      },
      { name: "Algorithm", show: (one) => one.algorithm },
      { name: "Target", show: (one) => html`<span dir="auto">${one.target}</span>` },
      { name: "Created", show: (one) => when(one.created_at) },
    ]} /></section>`;
}

/** Read apart: of a wide table they are many megabytes. */
function Sheets({ dataset }) {
  const [shown, show] = useState(MAX_SHEETS);
  const loaded = useLoaded((signal) => get(`/v1/datasets/${part(dataset)}`, { signal }), [dataset]);
  return html`<section><h2>Columns</h2><${Loaded} from=${loaded}>${({ columns }) => html`
    <ul class="sheets">${columns.slice(0, shown).map((one) => html`<${Sheet} of=${one} />`)}</ul>
    ${columns.length > shown && html`<button class="quiet" onClick=${() => show(shown + MAX_SHEETS)}>
      ${`Show more of ${number(columns.length)} columns`}</button>`}`}</${Loaded}>
  </section>`;
}

const Sheet = ({ of: one }) => html`<li class="card">
  <h3 dir="auto">${one.name}</h3>
  <p class="soft">${[
    one.kind,
    one.distinct !== undefined && `${number(one.distinct)} different`,
    one.missing > 0 && `${number(one.missing)} missing`,
  ]
    .filter(Boolean)
    .join(", ")}</p>
  ${one.histogram?.length > 0 && html`<${Histogram} bins=${one.histogram} name=${one.name} />`}
  ${one.kind === "numeric" && html`<p class="soft">
    ${number(one.minimum)} to ${number(one.maximum)}, median ${number(one.median)}</p>`}
  ${
    one.top_levels?.length > 0 &&
    html`<p class="soft" dir="auto">${one.top_levels
      .slice(0, 3)
      .map((top) => `${top.value} (${number(top.count)})`)
      .join(", ")}</p>`
  }
  ${one.warnings?.map((text) => html`<p class="warning">${text}</p>`)}
</li>`;

function Rows({ dataset }) {
  const [offset, move] = useState(0);
  const names = dataset.columns.slice(0, MAX_SHEETS).map((one) => one.name);
  const query = new URLSearchParams([
    ["offset", offset],
    ["limit", PAGE_ROWS],
    ...(dataset.columns.length > MAX_SHEETS ? names.map((name) => ["columns", name]) : []),
  ]);
  const loaded = useLoaded(
    (signal) => get(`/v1/datasets/${part(dataset.id)}/rows?${query}`, { signal }),
    [dataset.id, offset],
  );
  return html`<section><h2>Rows</h2>
    <${Loaded} from=${loaded}>${(page) => html`
      <${Table} caption="Rows" rows=${page.data.map((cells, place) => [page.offset + place, ...cells])} columns=${[
        "Row",
        ...page.columns,
      ].map((name, place) => ({
        name,
        number: typeof page.data[0]?.[place - 1] === "number",
        show: (row) =>
          row[place] === null
            ? html`<span class="soft">missing</span>`
            : html`<span dir="auto">${String(row[place])}</span>`,
      }))} />
      <nav class="pager" aria-label="Rows">
        <button class="quiet" disabled=${!offset} onClick=${() => move(offset - PAGE_ROWS)}>Earlier</button>
        <span class="soft">
          ${`${number(offset)} to ${number(Math.min(page.total, offset + PAGE_ROWS) - 1)}`}
          ${` of ${number(page.total)}`}</span>
        <button class="quiet" disabled=${offset + PAGE_ROWS >= page.total}
            onClick=${() => move(offset + PAGE_ROWS)}>Later</button>
      </nav>`}</${Loaded}>
  </section>`;
}

const HOW = {
  list: {
    curl: [
      `${curl("/v1/datasets?name=churn")} --data-binary @churn.csv \\`,
      "  -H 'Content-Type: application/octet-stream'",
    ].join("\n"),
    Python: 'import valiant\n\nservice = valiant.connect()\ndataset = service.upload("churn.csv")',
    Terminal: "valiant datasets",
  },
  one: (dataset) => ({
    curl: curl(`/v1/datasets/${dataset.id}`),
    Python: `import valiant\n\ndataset = valiant.connect().dataset(${JSON.stringify(dataset.id)})\ndataset.preview()`,
    Terminal: `valiant datasets ${dataset.id}`,
  }),
};
