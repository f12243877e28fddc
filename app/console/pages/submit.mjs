// A job of any kind: a form made from the OpenAPI document of this service.
import { useMemo, useState } from "preact/hooks";
import { get, part, post, readAll, readDatasets, readTrainable, uploadFile } from "../parts/api.mjs";
import { DryRun, useDryRun } from "../parts/dry-run.mjs";
import { Parameters, changed, faultsBelow } from "../parts/form.mjs";
import {
  Copied,
  Fault,
  Loaded,
  Page,
  asPython,
  curl,
  html,
  modelName,
  useAction,
  useLoaded,
} from "../parts/view.mjs";

const TITLES = {
  automl: "Find the best model",
  bootstrap: "Bootstrap",
  calibrate: "Calibrate",
  combine: "Combine models",
  compare: "Compare",
  drift: "Drift",
  evaluate: "Evaluate",
  import: "Import a model",
  optimise: "Optimise inputs",
  predict: "Predict a dataset",
  rank: "Rank columns",
  search: "Search",
  select: "Select columns",
  suggest: "Suggest experiments",
  train: "Train",
  update: "Update a model",
};

const FIRST = ["dataset", "target", "model"];
/** Formats of model files by their suffixes. */
const FORMATS = { txt: "lightgbm", json: "xgboost", ubj: "xgboost", onnx: "onnx", safetensors: "valiant" };

export function Submit({ named: [kind], query }) {
  const loaded = useLoaded(async (signal) => {
    const job = query.get("job");
    const [document, algorithms, datasets, models, before] = await Promise.all([
      get("/openapi.json", { signal }),
      readTrainable(signal),
      readDatasets(signal),
      readAll("/v1/models", signal),
      job ? get(`/v1/jobs/${part(job)}`, { signal }) : undefined,
    ]);
    return {
      given: before ? withoutNulls(before.request) : Object.fromEntries(query),
      document,
      algorithms,
      choices: { dataset: datasets.map((one) => one.name), model: models.map((one) => one.name) },
    };
  }, []);
  return html`<${Loaded} from=${loaded}>${(all) => html`<${Form} key=${kind} kind=${kind} ...${all} />`}</${Loaded}>`;
}

/** A request without what is null: that is the default of every field that may be null. */
const withoutNulls = (request) =>
  Object.fromEntries(Object.entries(request ?? {}).filter(([, value]) => value !== null));

/** The schema of the request: enumerations written out, and what it needs or its example has first. */
function requestOf(document, kind) {
  const { summary, description, requestBody } = document.paths[`/v1/jobs/${kind}`].post,
    { schemas } = document.components;
  const { schema, example } = requestBody.content["application/json"],
    named = (one) => schemas[one.$ref?.split("/").pop()];
  const whole = named(schema) || schema,
    written = (one) => (named(one)?.enum ? { ...one, ...named(one) } : one);
  const rank = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  const properties = Object.entries(whole.properties)
    .sort(([one], [other]) => rank(one) - rank(other))
    .map(([name, one]) => [
      name,
      {
        ...written(one),
        ...(one.anyOf && { anyOf: one.anyOf.map(written) }),
        description: one.description,
        "x-level": whole.required?.includes(name) || (name in example && name !== "name") ? "critical" : "secondary",
      },
    ]);
  return {
    title: TITLES[kind] || summary,
    lead: description.split("\n\n")[0],
    schema: { properties: Object.fromEntries(properties) },
  };
}

function Form({ kind, given, document, algorithms, choices }) {
  const { title, lead, schema } = useMemo(() => requestOf(document, kind), [kind]);
  const [values, set] = useState(() =>
    Object.fromEntries(Object.entries(given).filter(([name]) => name in schema.properties)),
  );
  const dry = useDryRun(kind, values);
  const faults = faultsBelow(dry.error?.errors || [], "");
  const [submit, { busy, error }] = useAction(async (event) => {
    event.preventDefault();
    location.hash = `#/jobs/${(await post(`/v1/jobs/${part(kind)}`, values)).id}`;
  });
  return html`<${Page} title=${title} lead=${lead} how=${how(kind, values)}>
    <form class="train" onSubmit=${submit}>
      <div>${kind === "import" && html`<${ModelFile} set=${set} />`}<${Parameters} schema=${schema} values=${values}
          faults=${faults} algorithms=${algorithms} choices=${choices}
              change=${(name, value) => set((before) => changed(before, name, value))} /></div>
      <${DryRun} of=${dry} problem=${error}
          rest=${dry.error?.errors.filter((one) => !(one.pointer.split("/")[1] in schema.properties)) || []}>
        <button disabled=${busy || !dry.value}>${busy ? "Submitting…" : "Submit"}</button></${DryRun}>
    </form>
    <details><summary>The request</summary><${Copied} text=${JSON.stringify(values, null, 1)} /></details>
  </${Page}>`;
}

/** Uploads the file of a model, and fills in what its name states. */
function ModelFile({ set }) {
  const [name, show] = useState();
  const [pick, { busy, error }] = useAction(async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    const [, base, suffix] = file.name.match(/^(.*?)(?:\.([^.]*))?$/),
      format = FORMATS[suffix];
    const { id } = await uploadFile(file);
    set((before) => ({
      ...before,
      file: id,
      ...(format && { file_format: format }),
      model: before.model || modelName(base),
    }));
    show(file.name);
  });
  return html`<p><label class="button">${busy ? "Uploading…" : "Choose the file of a model"}<input class="hidden"
      type="file" onChange=${pick} disabled=${busy} /></label>
    ${name && html` <span class="soft" role="status">${`${name} is uploaded.`}</span>`}</p><${Fault} error=${error} />`;
}

const how = (kind, values) => ({
  curl: curl(`/v1/jobs/${kind}`, values),
  Python: `import valiant\n\nvaliant.connect().run(${JSON.stringify(kind)}, **${asPython(values)})`,
  Terminal: "# Submitted by curl or Python, followed here:\nvaliant jobs --follow",
});
