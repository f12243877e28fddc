// The leaderboard of a search: candidates by rank, with their intervals, while it runs and afterwards.
import { Lines } from "../charts/small.mjs";
import { get, hasEnded, part, post, promote } from "./api.mjs";
import { Grid } from "./grid.mjs";
import { Scaled } from "./metrics.mjs";
import { Fault, html, number, seconds, size, useAction, useLoaded } from "./view.mjs";

/**
 * A candidate of a search or of an automatic one.
 * @typedef {object} Candidate
 * @property {number} place within the result
 * @property {string} name its algorithm, and what distinguishes it from others of this algorithm
 * @property {string} algorithm
 * @property {Record<string, any>} parameters that differ from those of the request
 * @property {number} [rank]
 * @property {string} [state]
 * @property {string} [reason] why it has no rank
 */

const lastOf = (pointer) => pointer.split("/").pop();

/** Settings as parameters: the last name of each pointer. */
const settingsOf = (settings = []) =>
  Object.fromEntries(settings.map(({ pointer, value }) => [lastOf(pointer), value]));

const shortly = (value) => (typeof value === "object" && value !== null ? JSON.stringify(value) : String(value));

/** @returns {Candidate[]} of a job whose result lists candidates, or that is on its way there */
export function candidatesOf(job) {
  const listed = job.result?.candidates ?? job.partial?.candidates ?? expected(job);
  const parameters = listed.map((one) => one.parameters ?? settingsOf(one.settings));
  const counts = new Map();
  for (const one of listed) counts.set(one.algorithm, (counts.get(one.algorithm) ?? 0) + 1);
  return listed.map((one, place) => ({
    ...one,
    place,
    parameters: parameters[place],
    reason: one.reason ?? one.error,
    name: counts.get(one.algorithm) === 1 ? one.algorithm : named(one.algorithm, parameters[place], place),
  }));
}

const named = (algorithm, parameters, place) => {
  const words = Object.entries(parameters).map(([name, value]) => `${name} ${shortly(value)}`);
  return words.length ? `${algorithm}, ${words.slice(0, 3).join(", ")}` : `${algorithm} (${place + 1})`;
};

/** Candidates of a search that runs: the algorithms of its request, with the values that its curve has so far. */
function expected(job) {
  const { request } = job;
  if (job.kind !== "search" || !request || request.grid?.length || request.draws?.length) return [];
  const algorithms = [request.algorithm, ...(request.alternatives ?? [])];
  const { name: metric, values } = rankingCurve(job) ?? { values: [] };
  const order = values.filter(Number.isFinite).sort((one, other) => (LOWER.has(metric) ? one - other : other - one));
  return algorithms.map((algorithm, place) => {
    const { name, ...parameters } = algorithm;
    const value = values[place];
    const isKnown = Number.isFinite(value);
    return {
      algorithm: name,
      parameters: {},
      full: parameters,
      state: isKnown ? "done" : place === values.length && job.state === "running" ? "running" : "waits",
      rank: isKnown ? order.indexOf(value) + 1 : undefined,
      validation: isKnown ? { name: metric, value, display: number(value), n: request.validation?.folds } : undefined,
    };
  });
}

/** Metrics by which searches rank without one of their own, and those of which less is better. */
const USUAL = ["log_loss", "rmse", "accuracy", "silhouette", "trustworthiness", "separation", "log_density"];
const LOWER = new Set(["rmse", "mae", "log_loss", "brier", "davies_bouldin", "stress", "deviance", "bic", "aic", "q"]);

/** The curve of a search with a value for each candidate: that of its metric, not one of a fit. */
const rankingCurve = ({ curves = [], request }) =>
  curves.find((curve) => (request.metric ? curve.name === request.metric : USUAL.includes(curve.name)));

const bytesOf = ({ size_bytes: bytes }) => bytes && size(bytes);

/** What a candidate costs, as automatic searches measure it. */
const COSTS = [
  { field: "seconds", name: "Seconds", number: true, value: (one) => one.seconds, show: (one) => seconds(one.seconds) },
  { field: "microseconds_a_row", name: "µs a row", number: true, value: (one) => one.microseconds_a_row },
  { field: "size_bytes", name: "Size", number: true, value: (one) => one.size_bytes, show: bytesOf },
];

/** @param {{job: object, reload: () => void}} props */
export function Leaderboard({ job }) {
  const candidates = candidatesOf(job);
  const chosen = chosenOf(job.result, candidates);
  const model = useLoaded(
    async (signal) => (job.model && job.version ? get(`/v1/models/${part(job.model)}`, { signal }) : undefined),
    [job.model, job.version],
  );
  const [act, { busy, error }] = useAction(async (change) => {
    await change();
    model.reload();
  });
  const move = () => act(() => promote(model.value, job.version));
  if (!candidates.length) return null;
  const rankOf = (one) => one.rank ?? Number.MAX_SAFE_INTEGER;
  const ranked = [...candidates].sort((one, other) => rankOf(one) - rankOf(other) || one.place - other.place);
  const ends = endsOf(candidates.map((one) => one.validation));
  const has = (name) => candidates.some((one) => one[name] !== undefined && one[name] !== null);
  const isChampion = model.value?.aliases.some((one) => one.alias === "champion" && one.version === job.version);
  const metric = job.result?.metric ?? candidates.find((one) => one.validation)?.validation.name ?? "";
  return html`<section aria-live="polite"><h2>Leaderboard</h2>
    ${(chosen || (job.result && job.version)) && html`<p>${"Chosen: "}<strong>${chosen?.name ?? "an ensemble"}</strong>
      ${job.version && ", as "}
      ${job.version && html`<a href=${`#/models/${part(job.model)}/${job.version}`}>
        ${`${job.model} ${job.version}`}</a>`}${" "}
      ${!chosen && (isChampion
        ? html`<span class="alias">champion</span>`
        : html`<button disabled=${busy || !model.value} onClick=${move}>Promote</button>`)}</p>`}
    ${job.result?.evidence && html`<p class="soft">${job.result.evidence}</p>`}
    <${Fault} error=${error} />
    <${Grid} caption="Leaderboard" rows=${ranked} rowKey=${(one) => String(one.id ?? one.place)} columns=${[
      { name: "Candidate", value: (one) => one.name },
      { name: "Rank", number: true, value: (one) => one.rank ?? undefined, show: (one) => one.rank ?? "" },
      {
        name: metric.replaceAll("_", " ") || "Metric",
        value: (one) => one.validation?.value ?? undefined,
        show: (one) => one.validation && html`<span class="scaled">${one.validation.display}
          <${Scaled} metric=${one.validation} ends=${ends} brief /></span>`,
      },
      ...(has("behind") ? [{ name: "Behind the first", show: (one) => html`<${Behind} of=${one} />` }] : []),
      ...COSTS.filter(({ field }) => has(field)),
      ...(has("state") || has("reason") ? [{ name: "State", value: (one) => one.reason ?? one.state }] : []),
      {
        name: "",
        show: (one) => html`<${Action} of=${one} job=${job} isChosen=${one === chosen} isChampion=${isChampion}
          busy=${busy || !model.value} promote=${move} />`,
      },
    ]} />
    <${Folds} candidates=${ranked} metric=${metric} />
  </section>`;
}

const MAX_DRAWN = 6;

/** The metric of the first candidates in each fold: where lines run side by side, a fold is hard for all. */
function Folds({ candidates, metric }) {
  const isWhole = ({ folds }) => folds?.length > 1 && folds.every(Number.isFinite);
  const drawn = candidates.filter(isWhole).slice(0, MAX_DRAWN);
  if (!drawn.length) return null;
  const series = drawn.map((one) => ({ name: one.name, x: one.folds.map((_, place) => place + 1), y: one.folds }));
  return html`<details><summary>Fold by fold</summary>
    <${Lines} title=${`${metric} in each fold`} x="fold" series=${series} /></details>`;
}

/** The chosen candidate: its place, or its id. */
const chosenOf = (result, candidates) => {
  if (result?.chosen === undefined || result.chosen === null) return undefined;
  return candidates.find((one) => one.id === result.chosen) ?? candidates[result.chosen];
};

/** A common scale of all intervals. */
const endsOf = (metrics) => {
  const values = metrics.flatMap((one) => (one ? [one.value, one.lower, one.upper] : [])).filter(Number.isFinite);
  return values.length ? [Math.min(...values), Math.max(...values)] : undefined;
};

function Behind({ of: { rank, behind, same_as_best: same } }) {
  if (rank === 1 || !behind) return "";
  const holds = behind.lower !== undefined && behind.lower <= 0 && behind.upper >= 0;
  return html`${behind.display}${(same ?? holds) && html`${" "}<span class="soft">may be as good</span>`}`;
}

/** Promotes the candidate that is a version; makes a version of any other. */
function Action({ of: candidate, job, isChosen, isChampion, busy, promote: move }) {
  const [train, { busy: sending, error }] = useAction(async () => {
    location.hash = `#/jobs/${(await post("/v1/jobs/train", trainingOf(job, candidate))).id}`;
  });
  if (!hasEnded(job) || candidate.rank === undefined) return "";
  if (isChosen && job.version)
    return isChampion
      ? html`<span class="alias">champion</span>`
      : html`<button disabled=${busy} onClick=${move} aria-label=${`Promote ${candidate.name}`}>Promote</button>`;
  if (!job.request || job.kind !== "search") return "";
  return html`<button class="quiet" disabled=${sending} onClick=${() => train()}
    aria-label=${`Train ${candidate.name}`}>Train</button><${Fault} error=${error} />`;
}

/** The request of a training of one candidate: that of the search, with its settings. */
export function trainingOf(job, candidate) {
  const { grid, draws, draw_count, alternatives, metric, rule, keep_fold_models, name, ...request } = job.request;
  const all = [job.request.algorithm, ...(alternatives ?? [])];
  const body = structuredClone({ ...request, algorithm: all.find((one) => one.name === candidate.algorithm) });
  body.validation = { ...body.validation, method: "holdout" };
  body.model ??= `${candidate.algorithm}`.replaceAll("_", "-");
  for (const { pointer, value } of candidate.settings ?? []) setAt(body, pointer, value);
  return body;
}

/** Sets the value that a JSON pointer names. A setting of an alternative is one of the algorithm of the training. */
function setAt(body, pointer, value) {
  const path = pointer.replace(/^\/alternatives\/\d+/, "/algorithm").split("/").slice(1);
  const last = path.pop();
  let place = body;
  for (const name of path) place = place[name] ??= {};
  place[last] = value;
}
