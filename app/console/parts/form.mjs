// A form made from the JSON Schema of parameters, with those that matter most first, and learners within learners.
import { useState } from "preact/hooks";
import { html } from "./view.mjs";

const LEVELS = { critical: null, secondary: "More parameters", expert: "Parameters for experts" };

/** The schema of the value itself, where it may also be null, and whether it may. */
const resolved = (schema) => {
  const members = schema.anyOf?.filter((one) => one.type !== "null") || [];
  if (members.length === 1)
    return [{ ...members[0], description: schema.description }, members.length < schema.anyOf.length];
  return [schema, Boolean(schema.anyOf && members.length < schema.anyOf.length)];
};

const isLearner = (schema) => /\/(Learner|Algorithm)$/.test(schema?.$ref || "");

const kindOf = (schema) => {
  if (isLearner(schema)) return "learner";
  if (isLearner(schema.items)) return "learners";
  if (schema.enum) return "choice";
  if (schema.type === "boolean") return "flag";
  if (schema.type === "integer" || schema.type === "number") return "number";
  if (schema.type === "array" && schema.items?.type === "string") return "lines";
  return schema.type === "string" && !schema.anyOf ? "text" : "json";
};

/** Values with one of them changed; undefined is the default. */
export const changed = (values, name, value) => {
  const { [name]: _, ...rest } = values;
  return value === undefined ? rest : { ...rest, [name]: value };
};

/** Faults of the problem below a JSON pointer: [{path, detail}], with the path from there. */
export const faultsBelow = (errors, pointer) =>
  errors
    .filter((one) => one.pointer.startsWith(`${pointer}/`))
    .map((one) => ({ path: one.pointer.slice(pointer.length + 1).split("/"), detail: one.detail }));

/** Faults below a name of their path, with the path from there. */
export const below = (faults, name) =>
  faults.filter((one) => one.path[0] === name).map((one) => ({ ...one, path: one.path.slice(1) }));

/** values: those that differ from the defaults. change(name, value): undefined is the default. algorithms: the
 * catalogue. choices: values that are suggested, by the name of a field. */
export function Parameters({ schema, values, faults = [], change, algorithms, choices, at = "" }) {
  const all = Object.entries(schema.properties || {});
  const fields = (some) =>
    html`<div class="fields">${some.map(
      ([name, one]) => html`<${Field} key=${name} name=${name} at=${at} schema=${one} value=${values[name]}
    faults=${below(faults, name)} change=${(value) => change(name, value)} algorithms=${algorithms}
        choices=${choices} />`,
    )}</div>`;
  const first = all.some(([, one]) => (one["x-level"] || "secondary") === "critical") ? "critical" : "secondary";
  return Object.entries(LEVELS).map(([level, title]) => {
    const some = all.filter(([, one]) => (one["x-level"] || "secondary") === level);
    if (!some.length) return null;
    if (level === first) return fields(some);
    const wrong = some.some(([name]) => below(faults, name).length > 0);
    return html`<${Fold} title=${`${title} (${some.length})`} wrong=${wrong}
        chosen=${some.some(([name]) => values[name] !== undefined)}>${fields(some)}</${Fold}>`;
  });
}

/** Closed at first, unless something within was chosen; open while something within is wrong. */
function Fold({ title, wrong, chosen, children }) {
  const [open, toggle] = useState(chosen);
  return html`<details open=${open || wrong} onToggle=${(event) => toggle(event.target.open)}><summary>${title}
    </summary>${children}</details>`;
}

export function Field({ name, schema: given, value, faults = [], change, algorithms, choices, at = "" }) {
  const [schema, nullable] = resolved(given),
    kind = kindOf(schema),
    fallback = given.default;
  const [first, ...rest] = (given.description || "").split(/(?<=\.)\s/);
  const bounds = [schema.minimum ?? schema.exclusiveMinimum, schema.maximum ?? schema.exclusiveMaximum];
  const id = `field-${at}${name}`,
    nested = kind === "learner" || kind === "learners";
  const own = faults.filter((one) => !nested || one.path.length === 0);
  const common = { id, "aria-describedby": `help-${at}${name}`, "aria-invalid": own.length ? "true" : null };
  const input = {
    learner: () =>
      html`<${Learner} common=${common} at=${`${at}${name}-`} value=${value || fallback} nullable=${nullable}
          faults=${faults} change=${change} algorithms=${algorithms} />`,
    learners: () =>
      html`<${Learners} common=${common} at=${`${at}${name}-`} values=${value || fallback || []} faults=${faults}
          change=${change} algorithms=${algorithms} />`,
    choice:
      () => html`<select ...${common} value=${JSON.stringify(value === undefined ? fallback : value) ?? ""}
          onChange=${(event) => change(event.target.value === "" ? undefined : JSON.parse(event.target.value))}>
      ${fallback === undefined && html`<option value="">choose one</option>`}${nullable && html`<option
          value="null">none</option>`}${schema.enum.map((one) => html`<option value=${JSON.stringify(one)}>
            ${String(one)}</option>`)}</select>`,
    flag: () =>
      html`<input ...${common} type="checkbox" checked=${value === undefined ? fallback : value}
          onChange=${(event) => change(event.target.checked)} />`,
    number:
      () => html`<input ...${common} type="number" step=${schema.type === "integer" ? 1 : "any"} min=${bounds[0]}
          max=${bounds[1]}
      value=${value === undefined ? "" : value}
          placeholder=${fallback === null || fallback === undefined ? "none" : String(fallback)}
      onInput=${(event) => change(event.target.value === "" ? undefined : Number(event.target.value))} />`,
    lines:
      () => html`<textarea ...${common} rows="3" placeholder="One a line"
          defaultValue=${(value || fallback || []).join("\n")}
      onChange=${(event) =>
        change(
          event.target.value.trim() === ""
            ? undefined
            : event.target.value
                .split("\n")
                .map((line) => line.trim())
                .filter(Boolean),
        )}></textarea>`,
    text: () => html`${choices?.[name] && html`<datalist id=${`${id}-choices`}>
      ${choices[name].map((one) => html`<option value=${one} />`)}</datalist>`}
      <input ...${common} list=${choices?.[name] ? `${id}-choices` : null} value=${value ?? ""}
          placeholder=${fallback ?? "none"}
              onInput=${(event) => change(event.target.value === "" ? undefined : event.target.value)} />`,
    json: () => html`<input ...${common} class="code" defaultValue=${value === undefined ? "" : JSON.stringify(value)}
        placeholder=${fallback === undefined ? "JSON" : JSON.stringify(fallback)}
      onChange=${(event) => change(parsed(event.target.value))} />`,
  };
  return html`<div class=${nested ? "field wide" : "field"}>
    <label for=${id}><code>${name}</code></label>
    ${input[kind]()}
    ${own.map((one) => html`<p class="wrong" role="alert">${one.detail}</p>`)}
    <p class="help" id=${`help-${at}${name}`}>${first}${rest.length > 0 && html` <details class="more">
      <summary>More</summary>${rest.join(" ")}</details>`}</p>
  </div>`;
}

/** An algorithm with its parameters: {name, …}. */
function Learner({ common, at, value, nullable, faults, change, algorithms }) {
  const { name, ...values } = value || {},
    card = algorithms.find((one) => one.name === name);
  return html`<div class="nested">
    <select ...${common} value=${name ?? ""}
        onChange=${(event) => change(event.target.value ? { name: event.target.value } : undefined)}>
      ${(nullable || name === undefined) && html`<option value="">${nullable ? "none" : "choose one"}</option>`}
      ${algorithms.map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select>
    ${
      card &&
      Object.keys(card.parameters.properties || {}).length > 0 &&
      html`<details open=${faults.some((one) => one.path.length > 0)}><summary>${`Parameters of ${name}`}</summary>
      <${Parameters} key=${name} at=${at} schema=${card.parameters} values=${values} faults=${faults}
          algorithms=${algorithms}
        change=${(key, one) => change({ name, ...changed(values, key, one) })} /></details>`
    }
  </div>`;
}

function Learners({ common, at, values, faults, change, algorithms }) {
  const replaced = (place, ...some) => change([...values.slice(0, place), ...some, ...values.slice(place + 1)]);
  return html`<div id=${common.id} role="group" aria-describedby=${common["aria-describedby"]}>
    ${values.map(
      (one, place) => html`<div class="row member">
      <${Learner} common=${{ id: `${common.id}-${place}`, "aria-label": `Learner ${place + 1}` }}
          at=${`${at}${place}-`} value=${one} faults=${below(faults, String(place))}
        change=${(value) => replaced(place, value)} algorithms=${algorithms} />
      <button type="button" class="quiet" disabled=${values.length < 2} onClick=${() => replaced(place)}
          aria-label=${`Remove learner ${place + 1}`}>Remove</button></div>`,
    )}
    <button type="button" class="quiet"
        onClick=${() => change([...values, { name: values[values.length - 1]?.name || "decision_tree" }])}>
        Add a learner</button>
  </div>`;
}

/** What is no JSON is sent as a text: the service names what is wrong with it. */
const parsed = (text) => {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
