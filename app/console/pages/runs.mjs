// Runs: versions, jobs and candidates of searches in one table, with the parameters that differ.
import { useMemo, useState } from "preact/hooks";
import { get, part, readAll, readDatasets } from "../parts/api.mjs";
import { candidatesOf } from "../parts/leaderboard.mjs";
import { Grid } from "../parts/grid.mjs";
import { firstMetric } from "../parts/metrics.mjs";
import { Loaded, Page, State, curl, html, seconds, useLoaded, when } from "../parts/view.mjs";

const MAX_PARAMETERS = 8;
const MAX_SEARCHES = 20;
const MAX_COMPARED = 20;
const SEARCHES = new Set(["search", "automl"]);

/**
 * A row of the table.
 * @typedef {object} Run
 * @property {"version" | "candidate" | "job"} type
 * @property {string} key
 * @property {string} name
 * @property {string} to address of its page
 * @property {Record<string, any>} parameters
 * @property {Record<string, any>} metrics by their names
 */

export function Runs() {
  const loaded = useLoaded(readRuns, []);
  return html`<${Page} title="Runs" how=${HOW} broad
      lead="Versions, jobs and candidates of searches. Tick versions to compare them on the same rows.">
    <${Loaded} from=${loaded}>${(runs) => html`<${Table} runs=${runs} />`}</${Loaded}>
  </${Page}>`;
}

async function readRuns(signal) {
  const [versions, jobs, datasets] = await Promise.all([
    readAll("/v1/versions", signal),
    readAll("/v1/jobs", signal),
    readDatasets(signal),
  ]);
  const names = new Map(datasets.map((dataset) => [dataset.id, dataset.name]));
  const made = new Set(versions.map((version) => version.job));
  const searches = jobs.filter((job) => SEARCHES.has(job.kind)).slice(0, MAX_SEARCHES);
  const results = await Promise.all(searches.map((job) => get(`/v1/jobs/${part(job.id)}`, { signal })));
  const others = jobs.filter((job) => !made.has(job.id));
  return [
    ...versions.map(ofVersion),
    ...others.map(ofJob),
    ...results.flatMap((job) => candidatesOf(job).map((candidate) => ofCandidate(job, candidate))),
  ]
    .map((run) => ({ ...run, datasetName: names.get(run.dataset) ?? (run.dataset ? "deleted" : undefined) }))
    .sort((one, other) => other.created.localeCompare(one.created));
}

const byName = (metrics) => {
  const found = {};
  for (const metric of metrics) if (metric.label === undefined) found[metric.name] ??= metric;
  return found;
};

const total = (stages) => stages && Object.values(stages).reduce((sum, value) => sum + value, 0) - (stages.queued ?? 0);

const ofVersion = (version) => ({
  type: "version",
  key: `${version.model}.${version.version}`,
  name: `${version.model} ${version.version}`,
  to: `#/models/${part(version.model)}/${version.version}`,
  state: version.aliases,
  algorithm: version.algorithm,
  task: version.task,
  dataset: version.dataset,
  parameters: version.parameters,
  metrics: byName(version.metrics),
  first: firstMetric(version.task, version.metrics)?.name,
  seconds: total(version.stages),
  created: version.created_at,
});

const ofJob = (job) => ({
  type: "job",
  key: job.id,
  name: job.name || job.kind,
  to: `#/jobs/${job.id}`,
  state: job.state,
  kind: job.kind,
  algorithm: job.algorithm,
  dataset: job.dataset,
  parameters: {},
  metrics: {},
  seconds: total(job.stages),
  created: job.created_at,
});

const ofCandidate = (job, candidate) => ({
  type: "candidate",
  key: `${job.id}.${candidate.place}`,
  name: `${job.name || job.kind}: ${candidate.name}`,
  to: `#/jobs/${job.id}`,
  state: candidate.rank === undefined ? "" : `rank ${candidate.rank}`,
  algorithm: candidate.algorithm,
  dataset: job.dataset,
  parameters: candidate.parameters,
  metrics: candidate.validation ? { [candidate.validation.name]: candidate.validation } : {},
  first: candidate.validation?.name,
  seconds: candidate.seconds,
  created: job.created_at,
});

const TYPES = { all: "everything", version: "versions", job: "jobs", candidate: "candidates" };

function Table({ runs }) {
  const [type, choose] = useState("all");
  const [ticked, tick] = useState(new Set());
  const [chosen, pick] = useState();
  const rows = useMemo(() => (type === "all" ? runs : runs.filter((run) => run.type === type)), [runs, type]);
  const names = useMemo(() => [...new Set(runs.flatMap((run) => Object.keys(run.metrics)))].sort(), [runs]);
  const metrics = chosen ?? usualMetrics(runs);
  const columns = (left) => [...FIXED, ...metrics.map(metricColumn), ...parameterColumns(left), ...LAST];
  const versions = [...ticked].join(",");
  return html`<${Grid} caption="Runs" rows=${rows} columns=${columns} rowKey=${(run) => run.key}
    hidden=${[{ name: "type", value: (run) => run.type }, ...names.map(metricColumn), ...allParameters(rows)]}
    ticked=${ticked} tick=${tick} canTick=${(run) => run.type === "version"}
    empty="Nothing has run yet."
    tools=${html`
      <label>Show <select value=${type} onChange=${(event) => choose(event.target.value)}>
        ${Object.entries(TYPES).map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select></label>
      <${Choice} names=${names} chosen=${metrics} pick=${pick} />
      <a class=${ticked.size < 2 || ticked.size > MAX_COMPARED ? "button quiet off" : "button"}
        aria-disabled=${ticked.size < 2 || ticked.size > MAX_COMPARED ? "true" : null}
        href=${`#/compare?versions=${part(versions)}`}>${`Compare ${ticked.size || "ticked"}`}</a>`} />`;
}

const toggled = (names, name) =>
  names.includes(name) ? names.filter((one) => one !== name) : [...names, name];

/** Which metrics are columns. */
const Choice = ({ names, chosen, pick }) => html`<details class="menu"><summary>Metrics</summary>
  <div class="card checks">${names.map(
    (name) => html`<label><input type="checkbox" checked=${chosen.includes(name)}
      onChange=${() => pick(toggled(chosen, name))} /> ${name}</label>`,
  )}</div></details>`;

/** The first metric of each task of the versions, else those of the candidates; at most three. */
const usualMetrics = (runs) => {
  const versions = runs.filter((run) => run.type === "version");
  const names = (versions.length ? versions : runs).map((run) => run.first).filter(Boolean);
  return [...new Set(names)].slice(0, 3);
};

const FIXED = [
  { name: "Run", value: (run) => run.name, show: (run) => html`<a href=${run.to}>${run.name}</a>` },
  {
    name: "State",
    value: (run) => (Array.isArray(run.state) ? run.state.join(" ") : run.state),
    show: (run) =>
      run.type === "job"
        ? html`<${State} of=${run.state} />`
        : [run.state].flat().map((text) => html`<span class="alias">${text}</span>`),
  },
  { name: "Algorithm", value: (run) => run.algorithm },
];
const LAST = [
  {
    name: "Dataset",
    value: (run) => run.datasetName,
    show: (run) =>
      run.dataset && html`<a href=${`#/datasets/${run.dataset}`} dir="auto">${run.datasetName}</a>`,
  },
  { name: "Seconds", number: true, value: (run) => run.seconds, show: (run) => seconds(run.seconds) },
  { name: "Created", value: (run) => run.created, show: (run) => when(run.created) },
];

const metricColumn = (name) => ({
  name,
  number: true,
  value: (run) => run.metrics[name]?.value ?? undefined,
  show: (run) => run.metrics[name]?.display ?? "",
});

const written = (value) => (typeof value === "object" && value !== null ? JSON.stringify(value) : value);

const parameterColumn = (name) => ({
  name,
  number: false,
  value: (run) => {
    const value = written(run.parameters[name]);
    return value === null ? "none" : value;
  },
  show: (run) => {
    const value = run.parameters[name];
    if (value === undefined) return "";
    return value === null ? html`<span class="soft">none</span>` : String(written(value));
  },
});

const allParameters = (runs) =>
  [...new Set(runs.flatMap((run) => Object.keys(run.parameters)))].map(parameterColumn);

/** Parameters with more than one value among runs of one algorithm; those of most runs first. */
export function parameterColumns(runs) {
  const seen = new Map();
  for (const { algorithm, parameters } of runs)
    for (const [name, value] of Object.entries(parameters)) {
      const values = seen.get(`${algorithm} ${name}`) ?? { name, texts: new Set(), count: 0 };
      values.texts.add(JSON.stringify(value));
      values.count += 1;
      seen.set(`${algorithm} ${name}`, values);
    }
  const counts = new Map();
  for (const { name, texts, count } of seen.values())
    if (texts.size > 1) counts.set(name, (counts.get(name) ?? 0) + count);
  const names = [...counts].sort(([, one], [, other]) => other - one).map(([name]) => name);
  return names.slice(0, MAX_PARAMETERS).map(parameterColumn);
}

const HOW = {
  curl: curl("/v1/versions?limit=50"),
  Python: "import valiant\n\nvaliant.connect().versions(50)",
  Terminal: "valiant models",
};
