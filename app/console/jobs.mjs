// Jobs: the list, and one while it runs.
import { useEffect, useState } from "preact/hooks";
import { get, part, post } from "./api.mjs";
import { Lines } from "./charts.mjs";
import { Result } from "./result.mjs";
import { Facts, Fault, Loaded, Page, State, Table, curl, html, useAction, useLoaded, usePages, when } from "./view.mjs";

const PAUSE = 250, QUEUE_PAUSE = 2000;
const STATES = ["", "queued", "running", "succeeded", "failed", "cancelled", "timed_out"];
const KINDS = ["bootstrap", "calibrate", "combine", "compare", "drift", "evaluate", "import", "optimise", "predict", "rank", "search", "select", "suggest", "train", "update"];
const ENDED = new Set(["succeeded", "failed", "cancelled", "timed_out"]);

export function Jobs() {
  const [state, choose] = useState("");
  const [list, pager] = usePages(`/v1/jobs?limit=50${state && `&state=${state}`}`, get);
  return html`<${Page} title="Jobs" lead="Long-running work: training, searches, evaluations. A job that was accepted reaches an end, whichever process dies." how=${HOW.list}
      actions=${html`<label>New job <select value="" onChange=${(event) => { location.hash = `#/new/${event.target.value}`; }}><option value="">choose a kind</option>${KINDS.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>`}>
    <label class="inline">State <select value=${state} onChange=${(event) => choose(event.target.value)}>
      ${STATES.map((one) => html`<option value=${one}>${one.replace("_", " ") || "all"}</option>`)}
    </select></label>
    <${Loaded} from=${list}>${(page) => html`<${Table} caption="Jobs" rows=${page.items} columns=${[
      { name: "Job", show: (one) => html`<a href=${`#/jobs/${one.id}`}>${one.name || one.id.slice(0, 18)}</a>` },
      { name: "Kind", show: (one) => one.kind },
      { name: "State", show: (one) => html`<${State} of=${one.state} />` },
      { name: "Model", show: (one) => one.model && html`<a href=${`#/models/${part(one.model)}`}>${one.model}</a>` },
      { name: "Submitted", show: (one) => when(one.created_at) },
    ]} />${pager}`}</${Loaded}>
  </${Page}>`;
}

/** The job as its events change it; where it waits it is read again now and then, for its place in the queue. */
function useJob(id) {
  const loaded = useLoaded((signal) => get(`/v1/jobs/${part(id)}`, { signal }), [id]);
  const [live, set] = useState();
  useEffect(() => {
    set();
    if (!loaded.value || ENDED.has(loaded.value.state)) return undefined;
    let job = loaded.value, waiting = null;
    const change = (to) => {
      job = to(job);
      waiting ??= setTimeout(() => { waiting = null; set(job); }, PAUSE);
    };
    const events = new EventSource(`/v1/jobs/${part(id)}/events`);
    for (const [name, apply] of Object.entries(CHANGES)) events.addEventListener(name, (event) => change((before) => apply(before, JSON.parse(event.data))));
    events.addEventListener("end", () => events.close());
    events.addEventListener("error", () => events.readyState === EventSource.CLOSED && loaded.reload());
    const queue = setInterval(() => job.state === "queued" && get(`/v1/jobs/${part(id)}`).then((read) => change(() => read), () => {}), QUEUE_PAUSE);
    return () => { events.close(); clearTimeout(waiting); clearInterval(queue); };
  }, [loaded.value]);
  return { ...loaded, value: live || loaded.value };
}

/** The job after each of its events. A stream begins with all there were. */
const CHANGES = {
  state: (job, step) => ({ ...job, state: step.state, attempt: step.attempt, queue_position: undefined,
    transitions: job.transitions.some((one) => one.at === step.at && one.state === step.state) ? job.transitions : [...job.transitions, step] }),
  progress: (job, { progress, message }) => ({ ...job, progress, message }),
  curve: (job, { name, start, values }) => {
    const drawn = job.curves.find((one) => one.name === name)?.values.slice(0, start) || [];
    return { ...job, curves: [...job.curves.filter((one) => one.name !== name), { name, values: [...drawn, ...values] }] };
  },
  end: (_, job) => job,
};

export function Job({ named: [id] }) {
  const loaded = useJob(id);
  const [cancel, { error, busy }] = useAction(async () => { await post(`/v1/jobs/${part(id)}/cancel`); loaded.reload(); });
  return html`<${Loaded} from=${loaded}>${(job) => html`
    <${Page} title=${`${job.kind} ${job.name || ""}`} how=${HOW.one(job)} actions=${html`
        ${job.version && html`<a class="button" href=${`#/models/${part(job.model)}/${job.version}`}>Read the report</a>`}
        ${!ENDED.has(job.state) && html`<button class="quiet" onClick=${cancel} disabled=${busy || job.state === "cancelling"}>Cancel</button>`}`}>
      <${Fault} error=${error} />
      <div class="progress" aria-live="polite">
        <${State} of=${job.state} />
        ${!ENDED.has(job.state) && html`<progress max="1" value=${job.progress} aria-label="Share that is done"></progress>`}
        <span>${job.queue_position !== undefined ? `Position in the queue: ${job.queue_position}` : job.message}</span>
      </div>
      ${job.error && html`<${Fault} error=${{ ...job.error, message: job.error.detail }} />`}
      ${job.warnings.map((text) => html`<p class="warning">${text}</p>`)}
      ${curves(job).map((one) => html`<${Lines} title=${one.name} x="step" series=${[one]} />`)}
      <${Facts} of=${{ Submitted: when(job.created_at), Started: job.started_at && when(job.started_at), Ended: job.finished_at && when(job.finished_at), Model: job.model, Version: job.version, Attempt: `${job.attempt} of at most ${job.max_attempts}`, Seconds: job.stages && Object.entries(job.stages).map(([stage, seconds]) => `${stage} ${seconds.toFixed(1)}`).join(", "), Cores: job.cores, Id: job.id }} />
      ${job.result && html`<${Result} of=${job.result} />`}
      <h2>States</h2>
      <${Table} caption="States of the job" rows=${job.transitions} columns=${[
        { name: "State", show: (one) => html`<${State} of=${one.state} />` },
        { name: "Time", show: (one) => new Date(one.at).toLocaleTimeString("en") },
        { name: "Attempt", number: true, show: (one) => one.attempt },
        { name: "Reason", show: (one) => one.reason || "" },
      ]} />
    </${Page}>`}</${Loaded}>`;
}

/** Curves of at least two points; a long one by every so many. */
const curves = (job) => job.curves.filter((one) => one.values.length > 1).map((one) => {
  const step = Math.ceil(one.values.length / 1000), kept = one.values.map((value, place) => [place, value]).filter(([place]) => place % step === 0);
  return { name: one.name, x: kept.map(([place]) => place), y: kept.map(([, value]) => value) };
});

const HOW = {
  list: { curl: curl("/v1/jobs"), Python: "import valiant\n\nvaliant.connect().jobs()", Terminal: "valiant jobs" },
  one: (job) => ({
    curl: `curl -sSN ${location.origin}/v1/jobs/${job.id}/events`,
    Python: `import valiant\n\nvaliant.connect().job(${JSON.stringify(job.id)}).wait()`,
    Terminal: `valiant jobs --follow ${job.id}`,
  }),
};
