// Versions beside each other: metrics and paired differences on the same rows, parameters that differ, and plots.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, part, readAll, readDatasets, runJob } from "../parts/api.mjs";
import { Scaled } from "../parts/metrics.mjs";
import { PlotCard } from "../parts/plot-card.mjs";
import { Fault, Loaded, Page, Table, asPython, curl, html, number, useAction, useLoaded } from "../parts/view.mjs";

const MAX_VERSIONS = 20;
/** Versions of a model that are compared where none are named. */
const NEWEST = 5;
/** Versions whose plots are drawn beside each other. */
const MAX_DRAWN = 6;

const keyOf = (one) => `${one.model}.${one.version}`;

/** A model and a version, of a key such as `iris.3`. */
const readKey = (key) => {
  const dot = key.lastIndexOf(".");
  return { model: key.slice(0, dot), version: Number(key.slice(dot + 1)) };
};

/** The versions that the address names, else the newest of its model. */
async function readVersions(query, signal) {
  const keys = (query.get("versions") || "").split(",").filter(Boolean);
  if (keys.length) {
    const read = ({ model, version }) => get(`/v1/models/${part(model)}/versions/${version}`, { signal });
    return Promise.all(keys.slice(0, MAX_VERSIONS).map(readKey).map(read));
  }
  if (!query.get("model")) return [];
  return (await readAll(`/v1/versions?model=${part(query.get("model"))}`, signal)).slice(0, NEWEST);
}

export function Compare({ query }) {
  const loaded = useLoaded(
    async (signal) => {
      const [versions, datasets] = await Promise.all([readVersions(query, signal), readDatasets(signal)]);
      return { versions, datasets };
    },
    [query.get("versions"), query.get("model")],
  );
  const [ways, describe] = useState();
  return html`<${Page} title="Compare" how=${ways}
      lead="Versions on the same rows. A difference counts where its interval leaves out zero."
      actions=${html`<a class="button quiet" href="#/runs">Choose in Runs</a>`}>
    <${Loaded} from=${loaded}>${({ versions, datasets }) =>
      versions.length < 2
        ? html`<p class="soft">Tick two versions or more in <a href="#/runs">Runs</a>, then press Compare.</p>`
        : html`<${Choice} versions=${versions} datasets=${datasets} describe=${describe} />`}</${Loaded}>
  </${Page}>`;
}

function Choice({ versions, datasets, describe }) {
  const own = versions.find((one) => datasets.some((dataset) => dataset.id === one.dataset))?.dataset;
  const [dataset, choose] = useState(own ?? datasets[0]?.id);
  const [chosen, set] = useState(() => versions.map(keyOf));
  const [result, show] = useState();
  const left = versions.filter((one) => chosen.includes(keyOf(one)));
  const body = { dataset, versions: left.map(({ model, version }) => ({ model, version })) };
  useEffect(() => describe(left.length < 2 ? undefined : how(body)), [dataset, chosen]);
  const toggle = (key) =>
    set((before) => (before.includes(key) ? before.filter((other) => other !== key) : [...before, key]));
  const [run, { busy, error }] = useAction(async (event) => {
    event.preventDefault();
    show();
    show(await runJob("compare", body));
  });
  return html`<form onSubmit=${run}>
      <fieldset><legend>Versions</legend><div class="checks">${versions.map(
        (one) => html`<label><input type="checkbox" checked=${chosen.includes(keyOf(one))}
          onChange=${() => toggle(keyOf(one))} /> ${`${one.model} ${one.version}, ${one.algorithm}`}</label>`,
      )}</div></fieldset>
      <div class="row"><label>Rows of<select value=${dataset} onChange=${(event) => choose(event.target.value)}>
        ${datasets.map((one) => html`<option value=${one.id}>${one.name}</option>`)}</select></label>
      <button disabled=${busy || left.length < 2}>${busy ? "Comparing…" : "Compare on these rows"}</button></div>
    </form>
    <${Fault} error=${error} />
    ${result && html`<${Result} of=${result} />`}
    <${Parameters} versions=${left} />
    <${Plots} versions=${left.slice(0, MAX_DRAWN)} />`;
}

const written = (value) =>
  typeof value === "object" && value !== null ? JSON.stringify(value) : String(value ?? "none");

/** A row for each parameter that differs, a column for each version; those of one algorithm only are folded. */
function Parameters({ versions }) {
  const rows = useMemo(() => differing(versions), [versions.map(keyOf).join()]);
  const [shared, single] = [rows.filter((row) => row.isShared), rows.filter((row) => !row.isShared)];
  return html`<section><h2>Parameters that differ</h2>
    <${ParameterTable} versions=${versions} rows=${shared} />
    ${single.length > 0 && html`<details><summary>${`Parameters of some algorithms only (${single.length})`}</summary>
      <${ParameterTable} versions=${versions} rows=${single} /></details>`}</section>`;
}

const ParameterTable = ({ versions, rows }) => html`
  <${Table} caption="Parameters" rows=${rows} empty="None: the versions have the same parameters." columns=${[
    { name: "Parameter", show: ({ name }) => html`<code>${name}</code>` },
    ...versions.map((one) => ({
      name: `${one.model} ${one.version}`,
      show: ({ values }) => values[keyOf(one)] ?? html`<span class="soft">has none</span>`,
    })),
  ]} />`;

function differing(versions) {
  const all = versions.map((one) => [keyOf(one), { algorithm: one.algorithm, target: one.target, ...one.parameters }]);
  const names = [...new Set(all.flatMap(([, parameters]) => Object.keys(parameters)))];
  return names
    .map((name) => {
      const having = all.filter(([, parameters]) => name in parameters);
      const values = Object.fromEntries(having.map(([key, parameters]) => [key, written(parameters[name])]));
      return { name, values, isShared: new Set(Object.values(values)).size > 1 };
    })
    .filter(({ isShared, values }) => isShared || Object.keys(values).length < all.length);
}

const PREFERRED = ["confusion_heatmap", "observed_predicted", "roc_curve", "feature_importances"];

/** One plot of every version, side by side. */
function Plots({ versions }) {
  const at = ({ model, version }) => `/v1/models/${part(model)}/versions/${version}/plots`;
  const loaded = useLoaded(
    async (signal) => Promise.all(versions.map(async (one) => (await get(at(one), { signal })).items)),
    [versions.map(keyOf).join()],
  );
  const [picked, pick] = useState();
  if (!loaded.value || loaded.value.length !== versions.length) return null;
  const plots = new Map(loaded.value.flat().map((plot) => [plot.name, plot]));
  const name = picked ?? PREFERRED.find((one) => plots.has(one)) ?? [...plots.keys()][0];
  if (!name) return null;
  return html`<section><h2>Plots</h2>
    <label class="inline">Plot <select value=${name} onChange=${(event) => pick(event.target.value)}>
      ${[...plots.values()].map((plot) => html`<option value=${plot.name}>${plot.title}</option>`)}</select></label>
    <div class="plots">${versions.map(
      (one, place) =>
        loaded.value[place].some((plot) => plot.name === name) &&
        html`<${PlotCard} key=${`${keyOf(one)} ${name}`} address=${`${at(one)}/${part(name)}`} plot=${plots.get(name)}
          title=${`${one.model} ${one.version}`} />`,
    )}</div></section>`;
}

function Result({ of: result }) {
  const name = (place) => `${result.versions[place].model} ${result.versions[place].version}`;
  const whole = (one) => one.metrics.filter((metric) => metric.label === undefined);
  const metrics = whole(result.versions[0]).map((one) => one.name);
  return html`<section aria-live="polite"><h2>Metrics</h2><p class="soft">${result.evidence}</p>
    ${result.warnings.map((text) => html`<p class="warning">${text}</p>`)}
    <${Table} caption="Metrics of the versions" rows=${result.versions} columns=${[
      {
        name: "Version",
        show: (one) => html`<a href=${`#/models/${part(one.model)}/${one.version}`}>${one.model} ${one.version}</a>`,
      },
      { name: "Algorithm", show: (one) => one.algorithm },
      ...metrics.map((metric, place) => ({ name: metric, show: (one) => whole(one)[place]?.display })),
    ]} />
    <h2>Differences in ${result.metric}</h2>
    <${Table} caption="Differences of pairs" rows=${result.pairs} columns=${[
      { name: "First", show: (one) => name(one.first) },
      { name: "Second", show: (one) => name(one.second) },
      { name: "Difference", show: (one) => one.difference?.display },
      { name: "Interval", show: (one) => html`<${Scaled} metric=${one.difference} ends=${endsOf(one.difference)} />` },
      {
        name: "Better",
        show: (one) => (one.better === undefined ? html`<span class="soft">undecided</span>` : name(one.better)),
      },
    ]} />
  </section>`;
}

/** A scale with 0 in its middle. */
const endsOf = (metric) => {
  if (!metric) return undefined;
  const reach = Math.max(...[metric.value, metric.lower, metric.upper].filter(Number.isFinite).map(Math.abs));
  return [-reach || -1, reach || 1];
};

const how = (body) => ({
  curl: curl("/v1/jobs/compare", body),
  Python: `import valiant\n\nvaliant.connect().run("compare", **${asPython(body)})`,
  Terminal: "# Submitted by curl or Python, followed here:\nvaliant jobs --follow",
});
