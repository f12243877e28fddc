// Up to 20 versions on the same rows, with the differences of each pair.
import { useEffect, useState } from "preact/hooks";
import { get, part, post, readAll, readDatasets } from "./api.mjs";
import { Fault, Loaded, Page, Table, asPython, curl, html, number, useAction, useLoaded } from "./view.mjs";

const MOST = 20, ENDED = new Set(["succeeded", "failed", "cancelled", "timed_out"]);

const pause = (time) => new Promise((done) => setTimeout(done, time));

const finished = async (job) => {
  for (let wait = 100; !ENDED.has(job.state); wait = Math.min(2 * wait, 2000)) {
    await pause(wait);
    job = await get(`/v1/jobs/${job.id}`);
  }
  return job;
};

const readChoices = async (signal) => {
  const [models, datasets] = await Promise.all([readAll("/v1/models", signal), readDatasets(signal)]);
  return { datasets, versions: models.flatMap((one) => [...one.versions].reverse().map((version) => ({ model: one.name, version }))).slice(0, 200) };
};

export function Compare({ query }) {
  const loaded = useLoaded(readChoices, []);
  const [ways, describe] = useState();
  return html`<${Page} title="Compare" lead="Versions on the same rows. A difference counts where its interval leaves out zero." how=${ways}>
    <${Loaded} from=${loaded}>${(all) => html`<${Choice} ...${all} first=${query.get("model")} describe=${describe} />`}</${Loaded}>
  </${Page}>`;
}

const key = (one) => `${one.model} ${one.version}`;

function Choice({ versions, datasets, first, describe }) {
  const [dataset, choose] = useState(datasets[0]?.id);
  const [chosen, set] = useState(() => versions.filter((one) => one.model === first).slice(0, 5).map(key));
  const [result, show] = useState();
  const body = { dataset, versions: versions.filter((one) => chosen.includes(key(one))) };
  useEffect(() => describe(chosen.length < 2 ? undefined : how(body)), [dataset, chosen]);
  const toggle = (one) => set((before) => before.includes(key(one)) ? before.filter((other) => other !== key(one)) : [...before, key(one)].slice(-MOST));
  const [run, { busy, error }] = useAction(async (event) => {
    event.preventDefault();
    show();
    const job = await finished(await post("/v1/jobs/compare", body));
    if (job.error) throw Object.assign(new Error(job.error.detail), job.error);
    show(job.result);
  });
  if (!versions.length || !datasets.length) return html`<p class="soft">There is nothing to compare yet.</p>`;
  return html`<form onSubmit=${run}>
      <fieldset><legend>Versions, at most ${MOST}</legend><div class="checks">${versions.map((one) => html`<label><input type="checkbox" checked=${chosen.includes(key(one))} onChange=${() => toggle(one)} /> ${one.model} ${one.version}</label>`)}</div></fieldset>
      <div class="row"><label>Rows of<select value=${dataset} onChange=${(event) => choose(event.target.value)}>${datasets.map((one) => html`<option value=${one.id}>${one.name}</option>`)}</select></label>
      <button disabled=${busy || chosen.length < 2}>${busy ? "Comparing…" : "Compare"}</button></div>
    </form>
    <${Fault} error=${error} />
    ${result && html`<${Result} of=${result} />`}`;
}

function Result({ of: result }) {
  const name = (place) => `${result.versions[place].model} ${result.versions[place].version}`;
  const whole = (one) => one.metrics.filter((metric) => metric.label === undefined);
  const metrics = whole(result.versions[0]).map((one) => one.name);
  return html`<section aria-live="polite"><h2>Metrics</h2><p class="soft">${result.evidence}</p>
    ${result.warnings.map((text) => html`<p class="warning">${text}</p>`)}
    <${Table} caption="Metrics of the versions" rows=${result.versions} columns=${[
      { name: "Version", show: (one) => html`<a href=${`#/models/${part(one.model)}/${one.version}`}>${one.model} ${one.version}</a>` },
      { name: "Algorithm", show: (one) => one.algorithm },
      ...metrics.map((metric, place) => ({ name: metric, show: (one) => whole(one)[place]?.display })),
    ]} />
    <h2>Differences in ${result.metric}</h2>
    <${Table} caption="Differences of pairs" rows=${result.pairs} columns=${[
      { name: "First", show: (one) => name(one.first) },
      { name: "Second", show: (one) => name(one.second) },
      { name: "Difference", show: (one) => one.difference.display },
      { name: "Interval", show: (one) => one.difference.lower === undefined ? "" : `${number(one.difference.lower)} to ${number(one.difference.upper)}` },
      { name: "Better", show: (one) => one.better === undefined ? html`<span class="soft">undecided</span>` : name(one.better) },
    ]} />
  </section>`;
}

const how = (body) => ({
  curl: curl("/v1/jobs/compare", body),
  Python: `import valiant\n\nvaliant.connect().run("compare", **${asPython(body)})`,
  Terminal: "# Submitted by curl or Python, followed here:\nvaliant jobs --follow",
});
