// Jobs: the list, and one while it runs.
import { useEffect, useState } from "preact/hooks";
import { get, hasEnded, part, post } from "../parts/api.mjs";
import { Lines } from "../charts/small.mjs";
import { Grid } from "../parts/grid.mjs";
import { Leaderboard, candidatesOf } from "../parts/leaderboard.mjs";
import { PredictedRows } from "../parts/predicted.mjs";
import { Result } from "../parts/result.mjs";
import {
  Facts, Fault, Loaded, Page, State, Table, curl, html, seconds, useAction, useAll, useLoaded, when,
} from "../parts/view.mjs";

const PAUSE_MILLISECONDS = 250;
const QUEUE_PAUSE_MILLISECONDS = 2000;
const MAX_POINTS = 1000;
const STATES = ["", "queued", "running", "succeeded", "failed", "cancelled", "timed_out"];
const KINDS = [
  ...["automl", "bootstrap", "calibrate", "combine", "compare", "drift", "evaluate", "import", "optimise", "predict"],
  ...["rank", "search", "select", "suggest", "train", "update"],
];

export function Jobs() {
  const [state, choose] = useState("");
  const list = useAll(`/v1/jobs${state && `?state=${state}`}`);
  const start = (event) => {
    location.hash = `#/new/${event.target.value}`;
  };
  return html`<${Page} title="Jobs" how=${HOW.list}
      lead="Long-running work: training, searches, evaluations. A job that was accepted reaches an end, whichever
        process dies."
      actions=${html`<label>New job <select value="" onChange=${start}>
        <option value="">choose a kind</option>
        ${KINDS.map((kind) => html`<option value=${kind}>${kind}</option>`)}</select></label>`}>
    <${Loaded} from=${list}>${(rows) => html`<${Grid} caption="Jobs" rows=${rows} rowKey=${(one) => one.id}
      columns=${COLUMNS} tools=${html`<label>State <select value=${state}
        onChange=${(event) => choose(event.target.value)}>
        ${STATES.map((one) => html`<option value=${one}>${one.replace("_", " ") || "all"}</option>`)}</select></label>`}
    />`}</${Loaded}>
  </${Page}>`;
}

const COLUMNS = [
  {
    name: "Job",
    value: (one) => one.name || one.id.slice(0, 18),
    show: (one) => html`<a href=${`#/jobs/${one.id}`}>${one.name || one.id.slice(0, 18)}</a>`,
  },
  { name: "Kind", value: (one) => one.kind },
  { name: "State", value: (one) => one.state.replace("_", " "), show: (one) => html`<${State} of=${one.state} />` },
  { name: "Algorithm", value: (one) => one.algorithm },
  {
    name: "Model",
    value: (one) => one.model,
    show: (one) => one.model && html`<a href=${`#/models/${part(one.model)}`}>${one.model}</a>`,
  },
  {
    name: "Seconds",
    number: true,
    value: secondsOf,
    show: (one) => seconds(secondsOf(one)),
  },
  { name: "Submitted", value: (one) => one.created_at, show: (one) => when(one.created_at) },
];

function secondsOf(job) {
  if (!job.started_at || !job.finished_at) return undefined;
  return (new Date(job.finished_at) - new Date(job.started_at)) / 1000;
}

/** The job as its events change it; where it waits it is read again now and then, for its place in the queue. */
function useJob(id) {
  const loaded = useLoaded((signal) => get(`/v1/jobs/${part(id)}`, { signal }), [id]);
  const [live, set] = useState();
  useEffect(() => {
    set();
    if (!loaded.value || hasEnded(loaded.value)) return undefined;
    let job = loaded.value,
      waiting = null;
    const change = (to) => {
      job = to(job);
      waiting ??= setTimeout(() => {
        waiting = null;
        set(job);
      }, PAUSE_MILLISECONDS);
    };
    const events = new EventSource(`/v1/jobs/${part(id)}/events`);
    for (const [name, apply] of Object.entries(CHANGES))
      events.addEventListener(name, (event) => change((before) => apply(before, JSON.parse(event.data))));
    events.addEventListener("end", () => events.close());
    events.addEventListener("error", () => events.readyState === EventSource.CLOSED && loaded.reload());
    const queue = setInterval(
      () =>
        job.state === "queued" &&
        get(`/v1/jobs/${part(id)}`).then(
          (read) => change(() => read),
          () => {},
        ),
      QUEUE_PAUSE_MILLISECONDS,
    );
    return () => {
      events.close();
      clearTimeout(waiting);
      clearInterval(queue);
    };
  }, [loaded.value]);
  return { ...loaded, value: live || loaded.value };
}

/** The job after each of its events. A stream begins with all there were. */
const CHANGES = {
  state: (job, step) => ({
    ...job,
    state: step.state,
    attempt: step.attempt,
    queue_position: undefined,
    transitions: job.transitions.some((one) => one.at === step.at && one.state === step.state)
      ? job.transitions
      : [...job.transitions, step],
  }),
  progress: (job, { progress, message }) => ({ ...job, progress, message }),
  curve: (job, { name, start, values }) => {
    const drawn = job.curves.find((one) => one.name === name)?.values.slice(0, start) || [];
    return {
      ...job,
      curves: [...job.curves.filter((one) => one.name !== name), { name, values: [...drawn, ...values] }],
    };
  },
  end: (before, job) => ({ ...job, request: job.request ?? before.request }),
};

export function Job({ named: [id] }) {
  const loaded = useJob(id);
  const [cancel, { error, busy }] = useAction(async () => {
    await post(`/v1/jobs/${part(id)}/cancel`);
    loaded.reload();
  });
  return html`<${Loaded} from=${loaded}>${(job) => html`
    <${Page} title=${`${job.kind} ${job.name || ""}`} how=${HOW.one(job)} actions=${html`
        ${job.version && html`<a class="button" href=${`#/models/${part(job.model)}/${job.version}`}>
          Read the report</a>`}
        ${job.request && html`<a class="button quiet" href=${again(job)}>Again, with changes</a>`}
        ${!hasEnded(job) && html`<button class="quiet" onClick=${cancel}
          disabled=${busy || job.state === "cancelling"}>Cancel</button>`}`}>
      <${Fault} error=${error} />
      <div class="progress" aria-live="polite">
        <${State} of=${job.state} />
        ${!hasEnded(job) && html`<progress max="1" value=${job.progress} aria-label="Share that is done"></progress>`}
        <span>${job.queue_position !== undefined ? `Position in the queue: ${job.queue_position}` : job.message}</span>
      </div>
      ${job.error && html`<${Fault} error=${{ ...job.error, message: job.error.detail }} />`}
      ${job.warnings.map((text) => html`<p class="warning">${text}</p>`)}
      <${Outcome} job=${job} reload=${loaded.reload} />
      <${About} job=${job} />
      <h2>States</h2>
      <${Table} caption="States of the job" rows=${job.transitions} columns=${[
        { name: "State", show: (one) => html`<${State} of=${one.state} />` },
        { name: "Time", show: (one) => new Date(one.at).toLocaleTimeString("en") },
        { name: "Attempt", number: true, show: (one) => one.attempt },
        { name: "Reason", show: (one) => one.reason || "" },
      ]} />
    </${Page}>`}</${Loaded}>`;
}

/** The form of its kind, with its request. */
const again = (job) => (job.kind === "train" ? `#/train?job=${job.id}` : `#/new/${part(job.kind)}?job=${job.id}`);

/** What it has so far: candidates of a search, predictions, curves, and the result of any other kind. */
function Outcome({ job, reload }) {
  if (candidatesOf(job).length)
    return html`<${Leaderboard} job=${job} reload=${reload} />
      ${job.result && html`<details><summary>The whole result</summary><${Result} of=${job.result} /></details>`}`;
  if (job.result?.result_dataset) return html`<${PredictedRows} dataset=${job.result.result_dataset} />`;
  return html`${curves(job).map((one) => html`<${Lines} title=${one.name} x="step" series=${[one]} />`)}
    ${job.result && html`<${Result} of=${job.result} />`}`;
}

const About = ({ job }) => html`<${Facts} of=${{
  Submitted: when(job.created_at),
  Started: job.started_at && when(job.started_at),
  Ended: job.finished_at && when(job.finished_at),
  Dataset: job.dataset && html`<a href=${`#/datasets/${job.dataset}`}>${job.dataset}</a>`,
  Model: job.model && html`<a href=${`#/models/${part(job.model)}`}>${job.model}</a>`,
  Version: job.version && html`<a href=${`#/models/${part(job.model)}/${job.version}`}>${job.version}</a>`,
  Attempt: `${job.attempt} of at most ${job.max_attempts}`,
  Seconds: job.stages && stagesOf(job.stages),
  Cores: job.cores,
  Id: job.id,
}} />`;

const stagesOf = (stages) =>
  Object.entries(stages)
    .map(([stage, value]) => `${stage} ${value.toFixed(1)}`)
    .join(", ");

/** Curves of at least two points; a long one by every so many. */
const curves = (job) =>
  job.curves
    .filter((one) => one.values.length > 1)
    .map((one) => {
      const step = Math.ceil(one.values.length / MAX_POINTS);
      const points = one.values.map((value, place) => [place, value]).filter(([place]) => place % step === 0);
      return { name: one.name, x: points.map(([place]) => place), y: points.map(([, value]) => value) };
    });

const HOW = {
  list: { curl: curl("/v1/jobs"), Python: "import valiant\n\nvaliant.connect().jobs()", Terminal: "valiant jobs" },
  one: (job) => ({
    curl: `curl -sSN ${location.origin}/v1/jobs/${job.id}/events`,
    Python: `import valiant\n\nvaliant.connect().job(${JSON.stringify(job.id)}).wait()`,
    Terminal: `valiant jobs --follow ${job.id}`,
  }),
};
