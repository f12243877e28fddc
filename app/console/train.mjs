// A training: what to predict, by which algorithm, with a dry run of every change.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, part, post, readDatasets, readTrainable } from "./api.mjs";
import { DryRun, useDryRun } from "./dry-run.mjs";
import { Parameters, changed, faultsBelow } from "./form.mjs";
import { Copied, Loaded, Page, asPython, curl, html, inShell, modelName, useAction, useLoaded } from "./view.mjs";

const FIRST = { classification: "gradient_boosting", regression: "gradient_boosting", none: "kmeans" };

export function Train({ query }) {
  const loaded = useLoaded(async (signal) => {
    const [datasets, algorithms] = await Promise.all([readDatasets(signal), readTrainable(signal)]);
    return { datasets, algorithms };
  }, []);
  return html`<${Loaded} from=${loaded}>${({ datasets, algorithms }) => datasets.length
    ? html`<${Form} datasets=${datasets} algorithms=${algorithms} first=${query.get("dataset") || datasets[0].id} />`
    : html`<${Page} title="Train" lead="There is no dataset yet."><a class="button" href="#/datasets">Upload one</a></${Page}>`}</${Loaded}>`;
}

function Form({ datasets, algorithms, first }) {
  const before = history.state?.train;  // of this entry of the history: after Back the form is as it was
  const [id, pick] = useState(before?.id ?? first);
  const chosen = useLoaded((signal) => get(`/v1/datasets/${part(id)}?sheets=false`, { signal }), [id]);
  const dataset = chosen.value;
  const [target, aim] = useState(before?.target);
  const [name, choose] = useState(before?.name ?? FIRST.classification);
  const [parameters, set] = useState(before?.parameters ?? {});
  const [model, call] = useState(before?.model ?? "");
  const [share, hold] = useState(before?.share ?? "0.2");
  const restored = useRef(before?.id);
  useEffect(() => history.replaceState({ train: { id, target, name, parameters, model, share } }, ""), [id, target, name, parameters, model, share]);
  useEffect(() => {
    if (!dataset || dataset.id === restored.current) return;
    restored.current = undefined;
    aim(dataset.columns[dataset.columns.length - 1].name);
    call(modelName(dataset.name));
  }, [dataset]);
  const algorithm = algorithms.find((one) => one.name === name);
  const body = useMemo(() => dataset && target !== undefined && {
    model, dataset: dataset.id, ...(target && { target }), algorithm: { name, ...parameters },
    ...(target && share !== "" && { validation: { method: "holdout", test_fraction: Number(share) } }),
  }, [dataset, target, name, parameters, model, share]);
  const dry = useDryRun("train", body);
  const [submit, { busy, error }] = useAction(async (event) => {
    event.preventDefault();
    location.hash = `#/jobs/${(await post("/v1/jobs/train", body)).id}`;
  });
  const faults = byField(dry.error?.errors || [], algorithm?.parameters.properties || {});
  const change = (key, value) => set((before) => changed(before, key, value));
  const Wrong = ({ at }) => (faults.elsewhere[at] || []).map((text) => html`<p class="wrong" role="alert">${text}</p>`);
  return html`<${Page} title="Train" lead="Choose what to predict and by which algorithm. Every field has a default that works." how=${body && how(body)}>
    <form class="train" onSubmit=${submit}>
      <section class="fields">
        <div class="field"><label for="dataset">Dataset</label>
          <select id="dataset" value=${id} onChange=${(event) => pick(event.target.value)}>
            ${datasets.some((one) => one.id === id) ? null : html`<option value=${id}>${dataset?.name || id}</option>`}
            ${datasets.map((one) => html`<option value=${one.id}>${one.name}</option>`)}</select><${Wrong} at="/dataset" /></div>
        <div class="field"><label for="target">Target, the column to predict</label>
          <select id="target" value=${target} onChange=${(event) => { aim(event.target.value); if (!event.target.value) choose(FIRST.none); }}>
            <option value="">none: find groups or structure</option>
            ${dataset?.columns.slice(0, 1000).map((one) => html`<option value=${one.name}>${`${one.name} (${one.kind})`}</option>`)}</select><${Wrong} at="/target" /></div>
        <div class="field"><label for="model">Name of the model</label>
          <input id="model" required pattern="[a-z0-9_\\-]{1,100}" value=${model} onInput=${(event) => call(event.target.value)} /><${Wrong} at="/model" /></div>
        ${target && html`<div class="field"><label for="share">Share of rows that are held out for the test</label>
          <input id="share" type="number" min="0.01" max="0.99" step="0.01" value=${share} onInput=${(event) => hold(event.target.value)} /><${Wrong} at="/validation/test_fraction" /></div>`}
        <div class="field"><label for="algorithm">Algorithm</label>
          <select id="algorithm" value=${name} onChange=${(event) => { choose(event.target.value); set({}); }}>
            ${algorithms.map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select>
          <p class="help">${algorithm?.gist} <a href=${`/docs/guide/algorithms/${name}`}>Read more</a></p><${Wrong} at="/algorithm" /></div>
      </section>
      <${DryRun} of=${dry} rest=${faults.rest} problem=${error}><button disabled=${busy || !dry.value}>${busy ? "Submitting…" : "Train"}</button></${DryRun}>
      <details class="parameters" open><summary>Parameters of ${name}</summary>
        ${algorithm && html`<${Parameters} key=${name} schema=${algorithm.parameters} values=${parameters} faults=${faults.parameters} change=${change} algorithms=${algorithms} />`}
      </details>
    </form>
    ${body && html`<details><summary>The request</summary><${Copied} text=${JSON.stringify(body, null, 1)} /></details>`}
  </${Page}>`;
}

const PLACES = ["/dataset", "/target", "/model", "/algorithm", "/validation/test_fraction"];
const byField = (errors, parameters) => {
  const found = { parameters: faultsBelow(errors, "/algorithm"), elsewhere: {}, rest: [] };
  for (const one of errors) {
    const [, parameter] = one.pointer.match(/^\/algorithm\/([^/]+)/) || [];
    if (PLACES.includes(one.pointer)) (found.elsewhere[one.pointer] ??= []).push(one.detail);
    else if (!(parameter in parameters)) found.rest.push(one);
  }
  return found;
};

const how = (body) => {
  const { model, dataset, target, algorithm: { name, ...parameters }, ...rest } = body;
  const fields = Object.entries({ ...parameters, ...rest }).filter(([, value]) => value !== undefined);
  const options = [...(target ? [["target", target]] : []), ["model", model], ["algorithm", name], ...fields];
  return {
    curl: curl("/v1/jobs/train", body),
    Python: `import valiant\n\nservice = valiant.connect()\nservice.train(service.dataset(${JSON.stringify(dataset)}), ${options.map(([key, value]) => `${key}=${asPython(value)}`).join(", ")})`,
    Terminal: `valiant train ${dataset}${target ? ` --target ${inShell(target)}` : ""} --model ${model} --algorithm ${name}${fields.map(([key, value]) => ` -s ${inShell(`${key}=${JSON.stringify(value)}`)}`).join("")}`,
  };
};
