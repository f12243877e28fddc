// A form made from the JSON Schema of an algorithm's parameters.
import { html } from "./view.mjs";

/** The schema of the value itself, where it may also be null, and whether it may. */
const resolved = (schema) => {
  const members = schema.anyOf?.filter((one) => one.type !== "null") || [];
  if (members.length === 1) return [{ ...members[0], description: schema.description }, members.length < schema.anyOf.length];
  return [schema, Boolean(schema.anyOf && members.length < schema.anyOf.length)];
};

const kindOf = (schema) => {
  if (schema.enum) return "choice";
  if (schema.type === "boolean") return "flag";
  if (schema.type === "integer" || schema.type === "number") return "number";
  return schema.type === "string" && !schema.anyOf ? "text" : "json";
};

/** values: those that differ from the defaults. faults: by the name of a parameter. change(name, value): undefined is the default. */
export function Parameters({ schema, values, faults, change }) {
  return html`<div class="fields">${Object.entries(schema.properties || {}).map(([name, one]) =>
    html`<${Field} key=${name} name=${name} schema=${one} value=${values[name]} faults=${faults[name]} change=${(value) => change(name, value)} />`)}
  </div>`;
}

export function Field({ name, schema: given, value, faults, change }) {
  const [schema, nullable] = resolved(given), kind = kindOf(schema), fallback = given.default;
  const [first, ...rest] = (given.description || "").split(/(?<=\.)\s/);
  const bounds = [schema.minimum ?? schema.exclusiveMinimum, schema.maximum ?? schema.exclusiveMaximum];
  const common = { id: `field-${name}`, "aria-describedby": `help-${name}`, "aria-invalid": faults ? "true" : null };
  const input = {
    choice: () => html`<select ...${common} value=${JSON.stringify(value === undefined ? fallback : value)} onChange=${(event) => change(JSON.parse(event.target.value))}>
      ${nullable && html`<option value="null">none</option>`}${schema.enum.map((one) => html`<option value=${JSON.stringify(one)}>${String(one)}</option>`)}</select>`,
    flag: () => html`<input ...${common} type="checkbox" checked=${value === undefined ? fallback : value} onChange=${(event) => change(event.target.checked)} />`,
    number: () => html`<input ...${common} type="number" step=${schema.type === "integer" ? 1 : "any"} min=${bounds[0]} max=${bounds[1]}
      value=${value === undefined ? "" : value} placeholder=${fallback === null || fallback === undefined ? "none" : String(fallback)}
      onInput=${(event) => change(event.target.value === "" ? undefined : Number(event.target.value))} />`,
    text: () => html`<input ...${common} value=${value ?? ""} placeholder=${fallback ?? "none"} onInput=${(event) => change(event.target.value === "" ? undefined : event.target.value)} />`,
    json: () => html`<input ...${common} class="code" defaultValue=${value === undefined ? "" : JSON.stringify(value)} placeholder=${fallback === undefined ? "JSON" : JSON.stringify(fallback)}
      onChange=${(event) => change(parsed(event.target.value))} />`,
  };
  return html`<div class="field">
    <label for=${`field-${name}`}><code>${name}</code></label>
    ${input[kind]()}
    ${faults?.map((text) => html`<p class="wrong" role="alert">${text}</p>`)}
    <p class="help" id=${`help-${name}`}>${first}${rest.length > 0 && html` <details class="more"><summary>More</summary>${rest.join(" ")}</details>`}</p>
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
