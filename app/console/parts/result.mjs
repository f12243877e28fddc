// The result of a job of any kind: its numbers, and a table for each of its lists.
import { part } from "./api.mjs";
import { Copied, Facts, Table, html, number } from "./view.mjs";

const SHOWN = 100,
  WIDE = 14,
  APART = ["row", "parameters", "values"];

export function Result({ of: { kind, warnings, ...result } }) {
  return html`<section><h2>Result</h2>
    ${warnings?.map((text) => html`<p class="warning">${text}</p>`)}
    <${Values} of=${result} />
    <details><summary>All of it</summary><${Copied} text=${JSON.stringify(result, null, 1).slice(0, 200_000)} />
      </details>
  </section>`;
}

/** An object of the API: its plain values, and a table of each list of objects. */
export function Values({ of }) {
  const entries = Object.entries(of).filter(([, value]) => value !== null);
  const lists = entries.filter(([, value]) => Array.isArray(value) && value.length > 0 && value.every(isObject));
  const facts = entries.filter(([, value]) => !isObject(value) && !(Array.isArray(value) && value.some(isObject)));
  return html`<${Facts} of=${Object.fromEntries(facts.map(([name, value]) => [words(name), linked(name, value)]))} />
    ${lists.map(
      ([
        name,
        rows,
      ]) => html`<h3>${words(name)}</h3><${Table} caption=${words(name)} rows=${rows.slice(0, SHOWN).map(flat)}
          columns=${columns(rows)} />
      ${rows.length > SHOWN && html`<p class="soft">The first ${SHOWN} of ${number(rows.length)}.</p>`}`,
    )}`;
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const words = (name) => name.replaceAll("_", " ");
const linked = (name, value) =>
  (name === "dataset" || name.endsWith("_dataset")) && typeof value === "string"
    ? html`<a href=${`#/datasets/${part(value)}`}>${value}</a>`
    : cell(value);

/** Inputs and parameters within an item become columns of their own. */
const flat = (item) =>
  Object.fromEntries(
    Object.entries(item).flatMap(([name, value]) =>
      APART.includes(name) && isObject(value) ? Object.entries(value) : [[name, value]],
    ),
  );

const columns = (rows) => {
  const names = [
    ...new Set(
      rows.slice(0, SHOWN).flatMap((one) =>
        Object.entries(flat(one))
          .filter(([, value]) => !Array.isArray(value) || value.length > 0)
          .map(([name]) => name),
      ),
    ),
  ];
  return names
    .slice(0, WIDE)
    .map((name) => ({
      name: words(name),
      number: typeof flat(rows[0])[name] === "number",
      show: (row) => html`<span dir="auto">${cell(row[name])}</span>`,
    }));
};

const cell = (value) => {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.slice(0, 20).map(cell).join(", ");
  if (isObject(value))
    return (
      value.display ??
      Object.entries(value)
        .slice(0, 8)
        .map(([name, one]) => `${words(name)} ${cell(one)}`)
        .join(", ")
    );
  return number(value);
};
