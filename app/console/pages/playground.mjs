// The playground: one row, its prediction as it changes, and the prediction along one input.
import { useRef, useState } from "preact/hooks";
import { get, part, post } from "../parts/api.mjs";
import { Interval, Lines, Signed } from "../charts/small.mjs";
import { Values } from "../parts/result.mjs";
import { Fault, Loaded, Page, Table, asPython, curl, html, number, useLater, useLoaded } from "../parts/view.mjs";

const MAX_LEVELS = 500;
const INPUTS = 60;
const address = (model, version, query) => `/v1/models/${part(model)}/${query}?version=${version}`;

/** Seconds since 1970 as the time that a field of a form holds, in UTC. */
const clock = (seconds) => new Date(1000 * seconds).toISOString().slice(0, 16);

const middle = (input) => {
  if (input.levels?.length) return input.levels[0];
  if (input.kind === "boolean") return true;
  if (input.kind === "datetime")
    return clock(input.minimum === undefined ? Date.now() / 1000 : (input.minimum + input.maximum) / 2);
  if (input.minimum === undefined || input.maximum === undefined) return input.kind === "numeric" ? 0 : "";
  return Number(((input.minimum + input.maximum) / 2).toPrecision(4));
};

export function Playground({ named: [model, version] }) {
  const loaded = useLoaded(
    async (signal) => {
      const one = await get(`/v1/models/${part(model)}/versions/${version}`, { signal });
      return { one, first: await readFirst(one, signal) };
    },
    [model, version],
  );
  return html`<${Loaded} from=${loaded}>${(all) => html`<${Try} ...${all} />`}</${Loaded}>`;
}

/** Inputs of the first row of the training table; none where the table is gone or lacks a column. */
async function readFirst(one, signal) {
  const names = one.inputs.slice(0, INPUTS).map((input) => input.name);
  if (!one.dataset) return {};
  const query = new URLSearchParams([["limit", 1], ...names.map((name) => ["columns", name])]);
  try {
    const { columns, data } = await get(`/v1/datasets/${part(one.dataset)}/rows?${query}`, { signal });
    return Object.fromEntries(columns.map((name, place) => [name, data[0]?.[place]]));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return {};
  }
}

/** The value of a row as a field of this kind holds it; the middle of the training where there is none. */
const startOf = (input, value) => {
  if (value === undefined || (value === null && !input.nullable)) return middle(input);
  if (value === null) return null;
  if (input.kind === "datetime") return String(value).slice(0, 16);
  if (input.levels) return String(value);
  return value;
};

/** `query(name, send)`: the response of `send`; nothing once the version has refused queries of this name (409). */
function useQueries() {
  const refused = useRef(new Set());
  return async (name, send) => {
    if (refused.current.has(name)) return undefined;
    try {
      return await send();
    } catch (error) {
      if (error.status !== 409) throw error;
      refused.current.add(name);
      return undefined;
    }
  };
}

function Try({ one, first }) {
  const [row, set] = useState(() =>
    Object.fromEntries(one.inputs.map((input) => [input.name, startOf(input, first[input.name])])),
  );
  const [shown, show] = useState(INPUTS);
  const numeric = one.inputs.filter((input) => input.kind === "numeric").map((input) => input.name);
  const [chosen, vary] = useState();
  const [unfolded, unfold] = useState(false);
  const query = useQueries();
  const send = (name, body, signal, more = "") =>
    post(address(one.model, one.version, name) + more, body, { signal });
  const rows = { rows: [row] };
  const predicted = useLater(
    async (signal) =>
      (await query("contributions", () => send("predict", rows, signal, "&include=contributions&top=8"))) ??
      send("predict", rows, signal),
    [row],
  );
  const reasons = predicted.value?.contributions?.reasons?.[0];
  const strongest = useRef();
  strongest.current ??= reasons?.find((reason) => numeric.includes(reason.column))?.column;
  const along = chosen ?? (predicted.value || predicted.error ? strongest.current ?? numeric[0] : undefined);
  const swept = useLater(
    async (signal) => {
      if (along === undefined) return undefined;
      const fixed = Object.fromEntries(Object.entries(row).filter(([name]) => name !== along));
      return query("sweep", () => send("sweep", { vary: [{ column: along, points: 40 }], fixed }, signal));
    },
    [row, along],
  );
  const interval = useLater(
    async (signal) =>
      one.task === "regression" ? query("intervals", () => send("intervals", rows, signal)) : undefined,
    [row],
  );
  const explained = useLater(
    async (signal) => (unfolded || !reasons ? query("explain", () => send("explain", rows, signal)) : undefined),
    [row, unfolded, !reasons],
  );
  const change = (name, value) => set((before) => ({ ...before, [name]: value }));
  return html`<${Page} title=${`Try ${one.model}, version ${one.version}`}
      lead="Move the inputs within the ranges of the training, and watch the prediction." how=${how(one, row)}
      actions=${html`<a class="button quiet" href=${`#/models/${part(one.model)}/${one.version}`}>Report</a>`}>
    <div class="playground">
      <form class="fields" onSubmit=${(event) => event.preventDefault()}>
        ${one.inputs.slice(0, shown).map(
          (input) => html`<${Input} key=${input.name} of=${input} value=${row[input.name]}
            change=${(value) => change(input.name, value)} />`,
        )}
        ${one.inputs.length > shown && html`<button type="button" class="quiet"
            onClick=${() => show(shown + INPUTS)}>Show more inputs</button>`}
      </form>
      <div class="result">
        <section class="card" aria-live="polite"><h2>Prediction</h2>
          <${Fault} error=${predicted.error} />
          ${predicted.value && html`<${Prediction} of=${predicted.value} target=${one.target} />`}
          ${interval.value && html`<${Bounds} of=${interval.value} />`}
        </section>
        ${along !== undefined && html`<section class="card">
          <label>Along <select value=${along} onChange=${(event) => vary(event.target.value)}>
            ${numeric.map((name) => html`<option value=${name}>${name}</option>`)}</select></label>
          ${swept.value && html`<${Sweep} of=${swept.value} target=${one.target} />`}
          <${Fault} error=${swept.error} />
        </section>`}
        ${reasons && html`<section class="card"><h2>Why</h2><${Reasons} of=${reasons} /></section>`}
        ${(reasons || explained.value?.explanations[0]) && html`<section class="card explained">
          <details onToggle=${(event) => unfold(event.target.open)}>
            <summary>${reasons ? "How the algorithm came to it" : "Why"}</summary>
            ${explained.value?.explanations[0] && html`<${Explanation} of=${explained.value} />`}
          </details></section>`}
      </div>
    </div>
  </${Page}>`;
}

/** The columns that move the prediction most, each with its contribution. */
function Reasons({ of }) {
  const most = Math.max(...of.map((one) => Math.abs(one.contribution)));
  return html`<${Table} caption="Reasons" rows=${of} columns=${[
    { name: "Reason", show: (one) => html`<span class="wrap" dir="auto">${one.text}</span>` },
    { name: "Contribution", show: (one) => html`<${Signed} value=${one.contribution} most=${most} />` },
  ]} />`;
}

/** The interval of a regression. */
function Bounds({ of }) {
  const [lower, upper, value] = [of.lower[0], of.upper[0], of.predictions[0]];
  const room = (upper - lower) / 2 || 1;
  return html`<p class="scaled"><${Interval} metric=${{ value, lower, upper }} lower=${lower - room}
      upper=${upper + room} />
    <span class="soft">
      ${`${number(lower)} to ${number(upper)}, with ${number(100 * of.confidence)} % confidence`}</span></p>`;
}

/** In the terms of the algorithm: neighbours, the path through a tree, coefficients.
 * A list of numbers has the names of the columns. */
function Explanation({
  of: {
    explanations: [one],
    columns,
    classes,
  },
}) {
  const names = (value) =>
    value.length === columns.length ? columns : value.length === classes?.length ? classes : null;
  const written = ([name, value]) => {
    if (!Array.isArray(value) || !value.every((part) => typeof part === "number") || !names(value))
      return [name, value];
    return [name, value.map((part, place) => ({ of: String(names(value)[place]), value: part }))];
  };
  return html`<${Values}
      of=${Object.fromEntries(Object.entries(Array.isArray(one) ? { members: one } : one).map(written))} />`;
}

function Input({ of: input, value, change }) {
  const id = `input-${input.name}`,
    missing = value === null;
  const ranged = input.kind === "numeric" && input.minimum !== undefined && input.maximum > input.minimum;
  const step = ranged ? Number(((input.maximum - input.minimum) / 200).toPrecision(1)) : "any";
  return html`<div class="field input">
    <label for=${id} dir="auto">${input.name}</label>
    ${
      input.levels
        ? html`<select id=${id} value=${value ?? ""} disabled=${missing}
            onChange=${(event) => change(event.target.value)}>
              ${input.levels.slice(0, MAX_LEVELS).map((level) => html`<option>${level}</option>`)}</select>`
        : input.kind === "boolean"
          ? html`<input id=${id} type="checkbox" checked=${value} disabled=${missing}
              onChange=${(event) => change(event.target.checked)} />`
          : input.kind === "datetime"
            ? html`<input id=${id} type="datetime-local" value=${value ?? ""} disabled=${missing}
                onChange=${(event) => event.target.value && change(event.target.value)} />`
            : ranged
              ? html`<input id=${id} type="range" min=${input.minimum} max=${input.maximum} step=${step}
                  value=${value ?? middle(input)} disabled=${missing}
                      onInput=${(event) => change(Number(event.target.value))} />
          <output for=${id}>${missing ? "missing" : number(value)}</output>`
              : html`<input id=${id} type=${input.kind === "numeric" ? "number" : "text"} step="any"
                  value=${value ?? ""} disabled=${missing}
          onInput=${(event) => change(input.kind === "numeric" ? Number(event.target.value) : event.target.value)} />`
    }
    ${input.nullable && html`<label class="missing"><input type="checkbox" checked=${missing}
        onChange=${(event) => change(event.target.checked ? null : middle(input))} /> missing</label>`}
  </div>`;
}

function Prediction({ of, target }) {
  const [value] = of.predictions,
    chances = of.probabilities?.[0];
  return html`
    <p class="predicted"><span class="soft">${target || of.task}</span> <strong dir="auto">
      ${Array.isArray(value) ? value.map(number).join(", ") : number(value)}</strong></p>
    ${
      chances &&
      html`<${Table} caption="Probabilities" rows=${of.classes.map((name, place) => [name, chances[place]])} columns=${[
        { name: "Class", show: ([name]) => html`<span dir="auto">${String(name)}</span>` },
        {
          name: "Probability",
          show: ([name, share]) =>
            html`<span class="share"><meter min="0" max="1" value=${share} aria-label=${`Probability of ${name}`}>
              </meter> ${number(Number(share.toFixed(4)))}</span>`,
        },
      ]} />`
    }
    ${of.flags.map((flag) => html`<p class="warning">${`${flag.code.replaceAll("_", " ")}: ${flag.column ?? ""}`}
      </p>`)}`;
}

function Sweep({ of, target }) {
  const [axis] = of.axes;
  const series = of.probabilities
    ? of.classes
        .slice(0, 6)
        .map((name, place) => ({ name: String(name), x: axis.values, y: of.probabilities.map((row) => row[place]) }))
    : [{ name: target || "prediction", x: axis.values, y: of.predictions }];
  if (!series.every((one) => one.y.every((value) => typeof value === "number"))) return null;
  return html`<${Lines} title=${of.probabilities ? "Probabilities" : `Prediction of ${target || "the model"}`}
      x=${axis.column} range=${of.probabilities && [0, 1]} series=${series} />`;
}

const how = (one, row) => ({
  curl: curl(address(one.model, one.version, "predict"), { rows: [row] }),
  Python: [
    "import valiant\n",
    `version = valiant.connect().model(${JSON.stringify(one.model)}).version(${one.version})`,
    `version.predict([${asPython(row)}])`,
  ].join("\n"),
  Terminal: `valiant predict ${one.model} rows.csv --version ${one.version}`,
});
