// The report of a version: the first metric beside a constant prediction, plots, guarantees, receipt, and predictions.
import { get, part, post, promote, uploadChosen } from "../parts/api.mjs";
import { Clusters } from "../charts/clusters.mjs";
import { Dendrogram } from "../charts/dendrogram.mjs";
import { CellMap } from "../charts/map.mjs";
import { Scatter } from "../charts/scatter.mjs";
import { Metrics, Tile, firstMetric } from "../parts/metrics.mjs";
import { PlotCard } from "../parts/plot-card.mjs";
import { FileButton } from "../parts/upload.mjs";
import {
  Copied, Facts, Fault, Loaded, Page, curl, html, size, useAction, useLoaded, when,
} from "../parts/view.mjs";

/** Training rows up to which all merges of a dendrogram are read. */
const MAX_DENDROGRAM_ROWS = 10_000;
const MAX_REASONS = 3;
/** Plots that people look at first, in this order; the others follow. */
const FIRST_PLOTS = [
  ...["confusion_heatmap", "roc_curve", "precision_recall_curve", "observed_predicted", "residuals_predicted"],
  ...["silhouette", "projection_scatter", "feature_importances", "coefficients", "row_contributions"],
];
const at = (model, version) => `/v1/models/${part(model)}/versions/${version}`;

async function read(name, version, signal) {
  const addresses = [
    `/v1/models/${part(name)}`,
    at(name, version),
    `${at(name, version)}/report`,
    `${at(name, version)}/plots`,
  ];
  const [model, one, report, plots] = await Promise.all(addresses.map((address) => get(address, { signal })));
  return { model, one, report, plots: inOrder(plots.items) };
}

const inOrder = (plots) => {
  const rank = ({ name }) => (FIRST_PLOTS.includes(name) ? FIRST_PLOTS.indexOf(name) : FIRST_PLOTS.length);
  return [...plots].sort((one, other) => rank(one) - rank(other));
};

export function Version({ named: [name, version] }) {
  const loaded = useLoaded((signal) => read(name, version, signal), [name, version]);
  const [act, { error, busy }] = useAction(async (change) => {
    await change();
    loaded.reload();
  });
  return html`<${Loaded} from=${loaded}>${({ model, one, report, plots }) => {
    const drawn = new Set(plots.map((plot) => plot.name));
    const aliases = model.aliases.filter((alias) => alias.version === one.version).map((alias) => alias.alias);
    const isChampion = aliases.includes("champion");
    return html`<${Page} title=${`${name}, version ${version}`} lead=${report.evidence} how=${how(one)} actions=${html`
        <a class="button" href=${`#/models/${part(name)}/${version}/try`}>Try it</a>
        <${PredictFile} of=${one} />
        ${drawn.has("tree_diagram") && html`<a class="button quiet" href=${`#/models/${part(name)}/${version}/tree`}>
          Tree</a>`}
        <button class="quiet" disabled=${busy || isChampion} onClick=${() => act(() => promote(model, one.version))}>
          ${isChampion ? "Is the champion" : "Promote to champion"}</button>`}>
      <${Fault} error=${error} />
      <${First} report=${report} task=${one.task} />
      <${About} of=${one} aliases=${aliases} siblings=${model.versions} />
      ${report.warnings.map((text) => html`<p class="warning">${text}</p>`)}
      <${AllMetrics} report=${report} />
      ${one.task === "clustering" && html`<${Clusters} model=${name} version=${version} />`}
      ${drawn.has("dendrogram_diagram") && report.rows_train <= MAX_DENDROGRAM_ROWS && html`
        <${Dendrogram} model=${name} version=${version} />`}
      ${drawn.has("map_planes") && html`<${CellMap} model=${name} version=${version} inputs=${one.inputs} />`}
      ${report.row_sample?.axes.length > 1 && html`<${Scatter} sample=${report.row_sample} dataset=${one.dataset} />`}
      ${plots.length > 0 && html`<section><h2>Plots</h2><div class="plots">${plots.map(
        (plot) => html`<${PlotCard} address=${`${at(name, version)}/plots/${part(plot.name)}`} plot=${plot} />`,
      )}</div></section>`}
      <${Guarantees} of=${report.guarantees} />
      <${Receipt} of=${one} />
    </${Page}>`;
  }}</${Loaded}>`;
}

/** Uploads a table, predicts all its rows with reasons where the model has some, and shows the predictions. */
function PredictFile({ of: one }) {
  const [predict, { busy, error }] = useAction(async (file) => {
    const dataset = await uploadChosen(file);
    const body = { model: one.model, version: one.version, dataset: dataset.id };
    const reasoned = { ...body, include: ["contributions"], top: MAX_REASONS };
    const job = await post("/v1/jobs/predict", reasoned).catch((problem) => {
      if (problem.status !== 409 && problem.status !== 422) throw problem;
      return post("/v1/jobs/predict", body);
    });
    location.hash = `#/jobs/${job.id}`;
  });
  return html`<${FileButton} take=${predict} busy=${busy} quiet>Predict a file</${FileButton}>
    <${Fault} error=${error} />`;
}

/** The metric that comes first, on the test rows if there are any. */
function First({ report, task }) {
  const tested = report.test.length > 0;
  const metrics = tested ? report.test : report.cross_validation?.length ? report.cross_validation : report.train;
  const metric = firstMetric(task, metrics);
  if (!metric) return null;
  const rows = tested ? "test rows" : metrics === report.train ? "training rows" : "folds";
  const baseline = tested && report.baselines?.find((one) => one.metric === metric.name);
  return html`<${Tile} metric=${metric} baseline=${baseline} rows=${rows} />`;
}

const About = ({ of: one, aliases, siblings }) => html`<${Facts} of=${{
  Algorithm: html`<a href=${`/docs/guide/algorithms/${one.algorithm}`}>${one.algorithm}</a>`,
  Task: one.task,
  Target: one.target,
  Aliases: aliases.join(", ") || undefined,
  Model: html`<a href=${`#/models/${part(one.model)}`}>${`${one.model}, ${siblings.length} versions`}</a>`,
  Dataset: one.dataset && html`<a href=${`#/datasets/${one.dataset}`}>open</a>`,
  Job: one.job && html`<a href=${`#/jobs/${one.job}`}>open</a>`,
  Created: when(one.created_at),
  File: html`<a href=${`${at(one.model, one.version)}/artifact`} download>${size(one.size_bytes)}</a>`,
}} />`;

/** Metrics of all classes together; those of single classes, of the training rows and of folds are folded. */
function AllMetrics({ report }) {
  const whole = (metrics) => metrics.filter((metric) => metric.label === undefined);
  const single = (metrics) => metrics.filter((metric) => metric.label !== undefined);
  const { test, train, cross_validation: crossed } = report;
  const first = test.length ? test : train;
  const folded = (title, metrics) => metrics?.length > 0 && html`<details><summary>${title}</summary>
    <${Metrics} caption=${title} metrics=${metrics} /></details>`;
  const title = test.length ? "Test rows" : "Training rows";
  return html`${whole(first).length > 0 && html`<section><h2>${title}</h2>
      <${Metrics} caption=${title} metrics=${whole(first)} baselines=${test.length ? report.baselines : []} />
    </section>`}
    ${folded(`${title}, by ${report.task === "clustering" ? "cluster" : "class"}`, single(first))}
    ${folded("Cross-validation", crossed)}
    ${test.length > 0 && folded("Training rows, optimistic", train)}`;
}

const Guarantees = ({ of }) =>
  of?.certificates?.length > 0 &&
  html`<section><h2>Guarantees</h2>
  <ul class="guarantees">${of.certificates.map((one) => html`<li class="card"><h3>${one.name.replaceAll("_", " ")}
    </h3><p>${one.statement}</p><p class="soft">${one.source}</p></li>`)}</ul>
</section>`;

function Receipt({ of: one }) {
  const [again, { busy, error }] = useAction(async () => {
    location.hash = `#/jobs/${(await post(`${at(one.model, one.version)}/reproduce`)).id}`;
  });
  return html`<section><h2>Receipt</h2>
    ${one.receipt.file_format
      ? html`<p class="soft">${`Imported from a file of ${one.receipt.file_format}, whose digest is in the receipt. `}
          The version has the digest <code>${one.digest}</code></p>`
      : html`<p class="soft">The same receipt gives the same bytes: <code>${one.digest}</code></p>
          <button class="quiet" onClick=${again} disabled=${busy}>Make it again from the receipt</button>`}
    <${Fault} error=${error} />
    <details><summary>Show the receipt</summary><${Copied} text=${JSON.stringify(one.receipt, null, 1)} /></details>
  </section>`;
}

const how = (one) => ({
  curl: curl(`${at(one.model, one.version)}/report`),
  Python: [
    "import valiant\n",
    `version = valiant.connect().model(${JSON.stringify(one.model)}).version(${one.version})`,
    "version.report",
  ].join("\n"),
  Terminal: `valiant report ${one.model} --version ${one.version} -o report.html`,
});
