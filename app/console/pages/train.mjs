// A training: what to predict, from which columns, by one algorithm or by the best of several, with a dry run.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, part, post, readDatasets, readTrainable } from "../parts/api.mjs";
import { OneAlgorithm, STARRED, SeveralAlgorithms, TICKED, taskOf } from "../parts/algorithm-choice.mjs";
import { ColumnTable, NO_CHOICES, asRequest, ofRequest, usualFeatures } from "../parts/column-table.mjs";
import { DryRun, useDryRun } from "../parts/dry-run.mjs";
import { Parameters, changed, faultsBelow } from "../parts/form.mjs";
import {
  Copied, Loaded, Page, asPython, curl, html, inShell, modelName, useAction, useLoaded,
} from "../parts/view.mjs";

const FIRST = { classification: "gradient_boosting", regression: "gradient_boosting", none: "kmeans" };
const DEFAULTS = { share: "0.2", method: "holdout", folds: 5, balanced: false, limit: "", seed: "" };
const MAX_TARGETS = 1000;
const MAX_SHEETS = 300;

export function Train({ query }) {
  const loaded = useLoaded(async (signal) => {
    const job = query.get("job");
    const [datasets, algorithms, request] = await Promise.all([
      readDatasets(signal),
      readTrainable(signal),
      job ? get(`/v1/jobs/${part(job)}`, { signal }).then((one) => one.request) : undefined,
    ]);
    return { datasets, algorithms, before: history.state?.train ?? (request && stateOf(request)) };
  }, []);
  return html`<${Loaded} from=${loaded}>${({ datasets, algorithms, before }) =>
    datasets.length
      ? html`<${Form} datasets=${datasets} algorithms=${algorithms} before=${before}
          first=${query.get("dataset") || datasets[0].id} />`
      : html`<${Page} title="Train" lead="There is no dataset yet.">
          <a class="button" href="#/">Upload one</a></${Page}>`}</${Loaded}>`;
}

/** The state of the form that makes this request. */
function stateOf(request) {
  const { name, ...parameters } = request.algorithm;
  const { validation = {} } = request;
  return {
    id: request.dataset,
    target: request.target ?? "",
    model: request.model ?? "",
    name,
    parameters,
    choices: ofRequest(request),
    options: {
      share: String(validation.test_fraction ?? DEFAULTS.share),
      method: validation.method ?? DEFAULTS.method,
      folds: validation.folds ?? DEFAULTS.folds,
      balanced: request.class_weight === "balanced",
      limit: request.time_limit_seconds === 3600 ? "" : String(request.time_limit_seconds ?? ""),
      seed: request.seed ? String(request.seed) : "",
    },
  };
}

/** What the form holds; of this entry of the history, so that after Back it is as it was. */
function useForm(before, first) {
  const [state, set] = useState(() => ({
    id: first,
    target: undefined,
    model: "",
    name: FIRST.classification,
    parameters: {},
    several: false,
    ticked: undefined,
    choices: NO_CHOICES,
    options: DEFAULTS,
    ...before,
  }));
  useEffect(() => history.replaceState({ train: state }, ""), [state]);
  return [state, (changes) => set((now) => ({ ...now, ...changes }))];
}

/** The dataset; with its data sheets unless it is so wide that they are many megabytes. */
async function readColumns(id, signal) {
  const slim = await get(`/v1/datasets/${part(id)}?sheets=false`, { signal });
  return slim.columns.length > MAX_SHEETS ? slim : get(`/v1/datasets/${part(id)}`, { signal });
}

function Form({ datasets, algorithms, before, first }) {
  const [state, change] = useForm(before, first);
  const { id, target, model, name, parameters, several, choices, options } = state;
  const loaded = useLoaded((signal) => readColumns(id, signal), [id]);
  const dataset = loaded.value;
  useEffect(() => {
    if (!dataset || target !== undefined) return;
    const last = dataset.columns[dataset.columns.length - 1];
    change({ target: last.name, model: modelName(dataset.name) });
  }, [dataset]);
  const task = taskOf(dataset?.columns.find((one) => one.name === target));
  const ticked = state.ticked ?? STARRED[task].slice(0, TICKED);
  const body = useMemo(
    () => dataset && target !== undefined && requestOf(state, dataset, ticked),
    [dataset, state, ticked.join()],
  );
  const kind = several ? "search" : "train";
  const dry = useDryRun(kind, several && ticked.length < 1 ? undefined : body);
  const [submit, { busy, error }] = useAction(async (event) => {
    event.preventDefault();
    location.hash = `#/jobs/${(await post(`/v1/jobs/${kind}`, body)).id}`;
  });
  const card = algorithms.find((one) => one.name === name);
  const faults = byField(dry.error?.errors || [], card?.parameters.properties || {});
  const Wrong = ({ at }) =>
    (faults.elsewhere[at] || []).map((text) => html`<p class="wrong" role="alert">${text}</p>`);
  const aim = (value) => {
    const restarted = !value && !several && { name: FIRST.none, parameters: {} };
    change({ target: value, ticked: undefined, ...restarted });
  };
  const label = busy ? "Submitting…" : several ? `Try ${ticked.length}` : "Train";
  return html`<${Page} title="Train" how=${body && how(kind, body)}
      lead="Choose what to predict and by which algorithm, or try several. Every field has a default that works.">
    <form class="train" onSubmit=${submit}>
      <section class="fields">
        <div class="field"><label for="dataset">Dataset</label>
          <select id="dataset" value=${id}
            onChange=${(event) => change({ id: event.target.value, target: undefined, choices: NO_CHOICES })}>
            ${datasets.some((one) => one.id === id) ? null : html`<option value=${id}>${dataset?.name || id}</option>`}
            ${datasets.map((one) => html`<option value=${one.id}>${one.name}</option>`)}</select>
          <${Wrong} at="/dataset" /></div>
        <div class="field"><label for="target">Target, the column to predict</label>
          <select id="target" value=${target} onChange=${(event) => aim(event.target.value)}>
            <option value="">none: find groups or structure</option>
            ${dataset?.columns.slice(0, MAX_TARGETS).map(
              (one) => html`<option value=${one.name}>${`${one.name} (${one.kind})`}</option>`,
            )}</select><${Wrong} at="/target" /></div>
        ${several
          ? html`<${SeveralAlgorithms} cards=${algorithms} task=${task} ticked=${ticked}
              tick=${(names) => change({ ticked: names })}><${Wrong} at="/algorithm" /></${SeveralAlgorithms}>`
          : html`<${OneAlgorithm} cards=${algorithms} task=${task} name=${name}
              choose=${(value) => change({ name: value, parameters: {} })}>
              <${Wrong} at="/algorithm" /></${OneAlgorithm}>`}
        <div class="field"><label for="model">Name of the model</label>
          <input id="model" required pattern="[a-z0-9_\\-]{1,100}" value=${model}
            onInput=${(event) => change({ model: event.target.value })} /><${Wrong} at="/model" /></div>
        <div class="field end"><button type="button" class="quiet" onClick=${() => change({ several: !several })}>
          ${several ? "Train one" : "Try several"}</button>
          <a href=${automatic(state, dataset)}>Find the best within a time</a></div>
      </section>
      <${DryRun} of=${dry} rest=${faults.rest} problem=${error}>
        <button disabled=${busy || !dry.value || (several && !ticked.length)}>${label}</button></${DryRun}>
      ${!several && html`<details class="parameters" open><summary>Parameters of ${name}</summary>
        ${card && html`<${Parameters} key=${name} schema=${card.parameters} values=${parameters}
          faults=${faults.parameters} algorithms=${algorithms}
          change=${(key, value) => change({ parameters: changed(parameters, key, value) })} />`}
      </details>`}
      <${Options} options=${options} supervised=${Boolean(target)} task=${task} several=${several} wrong=${Wrong}
        change=${(some) => change({ options: { ...options, ...some } })} />
      ${dataset && html`<${Columns} dataset=${dataset} state=${state} dry=${dry.value} change=${change} />`}
    </form>
    ${body && html`<details><summary>The request</summary>
      <${Copied} text=${JSON.stringify(body, null, 1)} /></details>`}
  </${Page}>`;
}

/** The form of a search within a budget of seconds, with what is chosen so far. */
const automatic = ({ target, model }, dataset) =>
  `#/new/automl?${new URLSearchParams({ dataset: dataset?.id ?? "", target: target ?? "", model })}`;

/** The table of columns, and how many are used. */
function Columns({ dataset, state: { target, choices }, dry, change }) {
  const taken = [target, ...Object.values(choices.roles)]; // the dry run may be one change behind
  const known = choices.features ?? dry?.features ?? usualFeatures(dataset.columns, target, choices);
  const used = known.filter((name) => !taken.includes(name));
  const adopt = (next, aimed) =>
    change({ choices: next, ...(aimed !== undefined && { target: aimed, ticked: undefined }) });
  return html`<details class="further" open><summary>
      ${`Columns: ${used.length} of ${dataset.columns.length} are learned from`}</summary>
    <${ColumnTable} columns=${dataset.columns} target=${target} choices=${choices} used=${used} change=${adopt} />
    ${choices !== NO_CHOICES && html`<button type="button" class="quiet"
      onClick=${() => change({ choices: NO_CHOICES })}>Back to the defaults</button>`}
  </details>`;
}

/** Validation, weights of classes, limits. */
function Options({ options, supervised, task, several, wrong: Wrong, change }) {
  const set = (name) => (event) => change({ [name]: event.target.value });
  return html`<details class="further"><summary>Validation and limits</summary><div class="fields">
    ${supervised && html`<div class="field"><label for="share">Share of rows that are held out for the test</label>
      <input id="share" type="number" min="0.01" max="0.99" step="0.01" value=${options.share}
        onInput=${set("share")} />
      <${Wrong} at="/validation/test_fraction" /></div>`}
    ${supervised && !several && html`<div class="field"><label for="method">Validation on the other rows</label>
      <select id="method" value=${options.method} onChange=${set("method")}>
        <option value="holdout">none</option><option value="kfold">folds</option>
        <option value="loo">each row by a fit of the others</option><option value="bootstrap">resamples</option>
      </select></div>`}
    ${(several || options.method === "kfold") && html`<div class="field"><label for="folds">Folds</label>
      <input id="folds" type="number" min="2" max="100" value=${options.folds}
        onInput=${(event) => change({ folds: Number(event.target.value) })} />
      <${Wrong} at="/validation/folds" /></div>`}
    ${task === "classification" && html`<div class="field"><label for="balanced">Every class counts as much</label>
      <input id="balanced" type="checkbox" checked=${options.balanced}
        onChange=${(event) => change({ balanced: event.target.checked })} /></div>`}
    <div class="field"><label for="limit">Time limit in seconds</label>
      <input id="limit" type="number" min="1" placeholder="3600" value=${options.limit} onInput=${set("limit")} />
      <${Wrong} at="/time_limit_seconds" /></div>
    <div class="field"><label for="seed">Seed: the same gives the same bytes</label>
      <input id="seed" type="number" min="0" placeholder="0" value=${options.seed} onInput=${set("seed")} />
      <${Wrong} at="/seed" /></div>
  </div></details>`;
}

/** The request of a training, or of a search among the ticked algorithms. */
function requestOf({ target, model, name, parameters, several, choices, options }, dataset, ticked) {
  const { validation: split, ...columns } = asRequest(choices);
  const validation = {
    ...(several ? { method: "kfold" } : options.method !== "holdout" && { method: options.method }),
    ...((several || options.method === "kfold") && { folds: options.folds }),
    ...(target && options.share !== "" && { test_fraction: Number(options.share) }),
    ...split,
  };
  const [first, ...alternatives] = ticked.map((one) => ({ name: one }));
  return {
    model,
    dataset: dataset.id,
    ...(target && { target }),
    ...(several ? { algorithm: first, alternatives } : { algorithm: { name, ...parameters } }),
    ...(Object.keys(validation).length && { validation: { method: "holdout", ...validation } }),
    ...columns,
    ...(options.balanced && { class_weight: "balanced" }),
    ...(options.limit !== "" && { time_limit_seconds: Number(options.limit) }),
    ...(options.seed !== "" && { seed: Number(options.seed) }),
  };
}

const PLACES = [
  ...["/dataset", "/target", "/model", "/algorithm", "/seed", "/time_limit_seconds"],
  ...["/validation/test_fraction", "/validation/folds"],
];

/** Faults of the dry run: by field, of parameters, and those that no field shows. */
const byField = (errors, parameters) => {
  const faults = { parameters: faultsBelow(errors, "/algorithm"), elsewhere: {}, rest: [] };
  for (const one of errors) {
    const [, parameter] = one.pointer.match(/^\/algorithm\/([^/]+)/) || [];
    if (PLACES.includes(one.pointer)) (faults.elsewhere[one.pointer] ??= []).push(one.detail);
    else if (!(parameter in parameters)) faults.rest.push(one);
  }
  return faults;
};

const how = (kind, body) => {
  if (kind !== "train")
    return {
      curl: curl(`/v1/jobs/${kind}`, body),
      Python: `import valiant\n\nvaliant.connect().run(${JSON.stringify(kind)}, **${asPython(body)})`,
      Terminal: "# Submitted by curl or Python, followed here:\nvaliant jobs --follow",
    };
  const { model, dataset, target, algorithm: { name, ...parameters }, ...rest } = body;
  const fields = Object.entries({ ...parameters, ...rest }).filter(([, value]) => value !== undefined);
  const options = [...(target ? [["target", target]] : []), ["model", model], ["algorithm", name], ...fields];
  const keywords = options.map(([key, value]) => `${key}=${asPython(value)}`).join(", ");
  const settings = fields.map(([key, value]) => ` -s ${inShell(`${key}=${JSON.stringify(value)}`)}`).join("");
  const aimed = target ? ` --target ${inShell(target)}` : "";
  return {
    curl: curl("/v1/jobs/train", body),
    Python: [
      "import valiant\n",
      "service = valiant.connect()",
      `service.train(service.dataset(${JSON.stringify(dataset)}), ${keywords})`,
    ].join("\n"),
    Terminal: `valiant train ${dataset}${aimed} --model ${model} --algorithm ${name}${settings}`,
  };
};
