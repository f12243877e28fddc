// Home: the newest models with their champions, jobs that run, and how the service does; samples where it is empty.
import { useEffect } from "preact/hooks";
import { get, part, upload, uploadChosen } from "../parts/api.mjs";
import { Scaled, firstMetric, metricName } from "../parts/metrics.mjs";
import { DropArea, FileButton } from "../parts/upload.mjs";
import {
  Facts, Fault, Loaded, Page, State, Table, curl, html, number, size, useAction, useLoaded, when,
} from "../parts/view.mjs";

const SAMPLES = {
  iris: "Flowers of three species",
  breast_cancer: "Tumours, benign or malignant",
  diabetes: "Progression of a disease, a number",
};
const MAX_MODELS = 10;
const REFRESH_MILLISECONDS = 4000;

export function Home() {
  const models = useLoaded(readModels, []);
  const [send, { busy, error }] = useAction(async (file) => open(await uploadChosen(file)));
  return html`<${Page} title="Home" how=${HOW}
      lead="Upload a table, train models of it, promote the best, and predict with it."
      actions=${html`<${FileButton} take=${send} busy=${busy}>Upload a table</${FileButton}>
        <a class="button quiet" href="#/train">Train</a>`}>
    <${Fault} error=${error} />
    <${DropArea} take=${send}>
      <${Loaded} from=${models}>${({ rows, datasets }) =>
        datasets === 0 && rows.length === 0 ? html`<${FirstVisit} />` : html`<${Models} rows=${rows} />`}</${Loaded}>
    </${DropArea}>
    <${Running} />
    <${Service} />
  </${Page}>`;
}

const open = (dataset) => {
  location.hash = `#/datasets/${dataset.id}`;
};

/** An empty service: samples, and the way from there. */
export function FirstVisit() {
  const [send, { busy, error }] = useAction(async (name) => {
    const content = await (await fetch(`/console/samples/${name}.csv`)).blob();
    open(await upload(content, name));
  });
  return html`<section class="card">
    <h2>Begin with a table</h2>
    <p>Upload one of your own, or drop it here, or take one of these. Then choose what to predict, train, read the
      report and try the model: about five minutes.</p>
    <ul class="choices">${Object.entries(SAMPLES).map(
      ([name, text]) => html`<li>
        <button onClick=${() => send(name)} disabled=${busy}>${name.replace("_", " ")}</button>
        ${" "}<span class="soft">${text}</span></li>`,
    )}</ul>
    <${Fault} error=${error} />
  </section>`;
}

/** The models with the newest versions: each with its champion, else its newest version. */
async function readModels(signal) {
  const [versions, datasets, served] = await Promise.all([
    get("/v1/versions?limit=100", { signal }),
    get("/v1/datasets?limit=1&sheets=false", { signal }),
    readServed(signal),
  ]);
  const newest = new Map();
  for (const version of versions.items) if (!newest.has(version.model)) newest.set(version.model, version);
  const rows = await Promise.all(
    [...newest.values()].slice(0, MAX_MODELS).map(async (version) => {
      const model = await get(`/v1/models/${part(version.model)}`, { signal });
      const champion = model.aliases.find((alias) => alias.alias === "champion")?.version;
      return {
        model,
        champion,
        served: served?.get(model.name),
        shown: await chosenVersion(versions.items, model.name, champion ?? version.version, signal),
      };
    }),
  );
  return { rows, datasets: datasets.items.length };
}

const chosenVersion = (listed, model, version, signal) =>
  listed.find((one) => one.model === model && one.version === version) ??
  get(`/v1/models/${part(model)}/versions/${version}`, { signal });

/** Rows that this process has predicted, by model; nothing for keys that may not read its counts. */
async function readServed(signal) {
  const response = await fetch("/metrics", { signal, credentials: "same-origin" });
  if (!response.ok) return undefined;
  const lines = (await response.text()).matchAll(/^valiant_predicted_rows_total\{model="([^"]*)"\} (\S+)$/gm);
  return new Map([...lines].map(([, model, rows]) => [model, Number(rows)]));
}

function Models({ rows }) {
  const counted = rows.some((row) => row.served !== undefined);
  return html`<h2>Models</h2>
    <${Table} caption="Models" rows=${rows} empty="No model yet: train one of a dataset." columns=${[
      {
        name: "Model",
        show: ({ model }) => html`<a href=${`#/models/${part(model.name)}`}>${model.name}</a>`,
      },
      { name: "Metric", show: ({ shown }) => html`<${First} version=${shown} />` },
      {
        name: "Champion",
        show: ({ model, champion, shown }) => html`
          <a href=${`#/models/${part(model.name)}/${shown.version}`}>${`version ${shown.version}`}</a>
          ${champion === undefined && html`${" "}<span class="soft">newest; no champion</span>`}`,
      },
      { name: "Algorithm", show: ({ shown }) => shown.algorithm },
      ...(counted ? [{ name: "Rows predicted", number: true, show: ({ served }) => number(served ?? 0) }] : []),
      { name: "Newest version", show: ({ shown }) => when(shown.created_at) },
    ]} />
    ${counted && html`<p class="soft">Rows predicted since this server process started.</p>`}`;
}

function First({ version }) {
  const metric = firstMetric(version.task, version.metrics);
  return metric && html`<span class="scaled">${`${metricName(metric)} ${metric.display}`}
    <${Scaled} metric=${metric} brief /></span>`;
}

const readUnfinished = async (signal) => {
  const pages = await Promise.all(
    ["running", "queued"].map((state) => get(`/v1/jobs?limit=20&state=${state}`, { signal })),
  );
  return pages.flatMap((page) => page.items);
};

function Running() {
  const jobs = useLoaded(readUnfinished, []);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || jobs.reload(), REFRESH_MILLISECONDS);
    return () => clearInterval(timer);
  });
  if (!jobs.value?.length) return null;
  return html`<h2>Jobs</h2>
    <${Table} caption="Jobs that run or wait" rows=${jobs.value} columns=${[
      { name: "Job", show: (job) => html`<a href=${`#/jobs/${job.id}`}>${job.name || job.kind}</a>` },
      { name: "State", show: (job) => html`<${State} of=${job.state} />` },
      { name: "Model", show: (job) => job.model },
      {
        name: "Progress",
        show: (job) => html`<progress max="1" value=${job.progress} aria-label="Share that is done"></progress>`,
      },
      { name: "Now", show: (job) => job.message },
    ]} />`;
}

/** What a key may not read is left out. */
const readService = async (signal) => {
  const readiness = get("/readyz", { signal }).catch((problem) => ({ status: "not ready", problem, checks: [] }));
  const usage = get("/v1/usage", { signal }).catch(() => undefined);
  return { readiness: await readiness, usage: await usage };
};

function Service() {
  const loaded = useLoaded(readService, []);
  if (!loaded.value) return null;
  const { readiness, usage } = loaded.value;
  const workers = readiness.checks.find((check) => check.name === "workers");
  const failing = readiness.checks.filter((check) => !check.ok);
  const quota = (used, limit, shown) => (limit === undefined ? shown(used) : `${shown(used)} of ${shown(limit)}`);
  return html`<h2>Service</h2>
    <${Facts} of=${{
      State: readiness.status.replace("_", " "),
      Workers: workers?.detail,
      Queue: usage && `${number(usage.queued_jobs)} waiting, ${number(usage.running_jobs)} running`,
      Disk: usage && quota(usage.storage_bytes, usage.quotas.storage_bytes, size),
    }} />
    ${readiness.problem && html`<p class="warning">${readiness.problem.message}</p>`}
    ${failing.map(
      ({ name, detail }) => html`<p class="warning">${`${name.replaceAll("_", " ")}: ${detail || "fails"}`}</p>`,
    )}`;
}

const HOW = {
  curl: curl("/v1/versions?limit=10"),
  Python: "import valiant\n\nvaliant.connect().versions(10)",
  Terminal: "valiant models",
};
