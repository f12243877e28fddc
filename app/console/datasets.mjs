// Datasets: the list with uploads, and one with its data sheet and its rows.
import { useState } from "preact/hooks";
import { get, part, remove, upload } from "./api.mjs";
import { Histogram } from "./charts.mjs";
import { Facts, Fault, Loaded, Page, Table, curl, html, number, size, useAction, useLoaded, usePages, when } from "./view.mjs";

const SAMPLES = { iris: "Flowers of three species", breast_cancer: "Tumours, benign or malignant", diabetes: "Progression of a disease, a number" };
/** Formats that the end of a name chooses; the others are recognised by their content. */
const FORMATS = { ".arff": "arff", ".svm": "svmlight", ".libsvm": "svmlight", ".svmlight": "svmlight" };
const ROWS = 100, SHEETS = 60;
const open = (dataset) => { location.hash = `#/datasets/${dataset.id}`; };

export function Datasets() {
  const [list, pager] = usePages("/v1/datasets?limit=50&sheets=false", get);
  const [send, { busy, error }] = useAction(async (file, name, format) => open(await upload(file, name, format)));
  const sample = async (name) => send(await (await fetch(`/console/samples/${name}.csv`)).blob(), name);
  const pick = (event) => {
    const [file] = event.target.files;
    if (!file) return;
    const unpacked = file.name.replace(/\.(gz|bz2|xz|zst|lz4|zip)$/i, "");
    const [, name, suffix] = /^(.*?)(\.[^.]*)?$/s.exec(unpacked);
    send(file, name || unpacked, FORMATS[suffix?.toLowerCase()]);
  };
  return html`<${Page} title="Datasets" how=${HOW.list}
      lead="A dataset is a table that was uploaded once and does not change: CSV, Excel, JSON, Parquet, Arrow, ARFF or LibSVM, also compressed or in a zip archive."
      actions=${html`<label class="button">${busy ? "Uploading…" : "Upload a file"}<input class="hidden" type="file" onChange=${pick} disabled=${busy} /></label>`}>
    <${Fault} error=${error} />
    <${Loaded} from=${list}>${(page) => page.items.length === 0 ? html`<${FirstVisit} choose=${sample} busy=${busy} />` : html`
      <${Table} caption="Datasets" rows=${page.items} columns=${[
        { name: "Name", show: (one) => html`<a href=${`#/datasets/${one.id}`} dir="auto">${one.name}</a>` },
        { name: "Rows", number: true, show: (one) => number(one.rows) },
        { name: "Columns", number: true, show: (one) => number(one.columns.length) },
        { name: "Size", number: true, show: (one) => size(one.size_bytes) },
        { name: "Uploaded", show: (one) => when(one.created_at) },
      ]} />${pager}`}</${Loaded}>
  </${Page}>`;
}

/** An empty service: a tour of five steps that ends with a prediction. */
const FirstVisit = ({ choose, busy }) => html`<section class="card">
  <h2>Begin with a table</h2>
  <p>Upload one of your own, or take one of these. Then choose what to predict, train, read the report and try the model: about five minutes.</p>
  <ul class="choices">${Object.entries(SAMPLES).map(([name, text]) => html`<li>
    <button onClick=${() => choose(name)} disabled=${busy}>${name.replace("_", " ")}</button> <span class="soft">${text}</span></li>`)}
  </ul>
</section>`;

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
      <${Facts} of=${{ Rows: number(one.rows), Columns: number(one.columns.length), Size: size(one.size_bytes), Uploaded: when(one.created_at), Id: one.id }} />
      ${one.warnings?.map((text) => html`<p class="warning">${text}</p>`)}
      <${Sheets} dataset=${one.id} />
      <${Rows} dataset=${one} />
    </${Page}>`}</${Loaded}>`;
}

/** Read apart: of a wide table they are many megabytes. */
function Sheets({ dataset }) {
  const [shown, show] = useState(SHEETS);
  const loaded = useLoaded((signal) => get(`/v1/datasets/${part(dataset)}`, { signal }), [dataset]);
  return html`<section><h2>Columns</h2><${Loaded} from=${loaded}>${({ columns }) => html`
    <ul class="sheets">${columns.slice(0, shown).map((one) => html`<${Sheet} of=${one} />`)}</ul>
    ${columns.length > shown && html`<button class="quiet" onClick=${() => show(shown + SHEETS)}>${`Show more of ${number(columns.length)} columns`}</button>`}`}</${Loaded}>
  </section>`;
}

const Sheet = ({ of: one }) => html`<li class="card">
  <h3 dir="auto">${one.name}</h3>
  <p class="soft">${one.kind}${one.distinct === undefined ? "" : `, ${number(one.distinct)} different`}${one.missing ? `, ${number(one.missing)} missing` : ""}</p>
  ${one.histogram?.length > 0 && html`<${Histogram} bins=${one.histogram} name=${one.name} />`}
  ${one.kind === "numeric" && html`<p class="soft">${number(one.minimum)} to ${number(one.maximum)}, median ${number(one.median)}</p>`}
  ${one.top_levels?.length > 0 && html`<p class="soft" dir="auto">${one.top_levels.slice(0, 3).map((top) => `${top.value} (${number(top.count)})`).join(", ")}</p>`}
  ${one.warnings?.map((text) => html`<p class="warning">${text}</p>`)}
</li>`;

function Rows({ dataset }) {
  const [offset, move] = useState(0);
  const names = dataset.columns.slice(0, SHEETS).map((one) => one.name);
  const query = new URLSearchParams([["offset", offset], ["limit", ROWS], ...(dataset.columns.length > SHEETS ? names.map((name) => ["columns", name]) : [])]);
  const loaded = useLoaded((signal) => get(`/v1/datasets/${part(dataset.id)}/rows?${query}`, { signal }), [dataset.id, offset]);
  return html`<section><h2>Rows</h2>
    <${Loaded} from=${loaded}>${(page) => html`
      <${Table} caption="Rows" rows=${page.data.map((cells, place) => [page.offset + place, ...cells])} columns=${["Row", ...page.columns].map((name, place) => ({
        name, number: typeof page.data[0]?.[place - 1] === "number",
        show: (row) => row[place] === null ? html`<span class="soft">missing</span>` : html`<span dir="auto">${String(row[place])}</span>`,
      }))} />
      <nav class="pager" aria-label="Rows">
        <button class="quiet" disabled=${!offset} onClick=${() => move(offset - ROWS)}>Earlier</button>
        <span class="soft">${`${number(offset)} to ${number(Math.min(page.total, offset + ROWS) - 1)} of ${number(page.total)}`}</span>
        <button class="quiet" disabled=${offset + ROWS >= page.total} onClick=${() => move(offset + ROWS)}>Later</button>
      </nav>`}</${Loaded}>
  </section>`;
}

const HOW = {
  list: {
    curl: `${curl("/v1/datasets?name=churn")} --data-binary @churn.csv \\\n  -H 'Content-Type: application/octet-stream'`,
    Python: 'import valiant\n\nservice = valiant.connect()\ndataset = service.upload("churn.csv")',
    Terminal: "valiant datasets",
  },
  one: (dataset) => ({
    curl: curl(`/v1/datasets/${dataset.id}`),
    Python: `import valiant\n\ndataset = valiant.connect().dataset(${JSON.stringify(dataset.id)})\ndataset.preview()`,
    Terminal: `valiant datasets ${dataset.id}`,
  }),
};
