// What pages share: markup, loading, problems, tables, and how to do the same elsewhere.
import { h } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import htm from "htm";
import { get, readAll } from "./api.mjs";

export const html = htm.bind(h);

/** The result of `load`, again when one of `inputs` changes, and `reload()`. */
export function useLoaded(load, inputs) {
  const [state, set] = useState({ loading: true });
  const [turn, again] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    set((before) => ({ ...before, loading: true }));
    load(stop.signal).then(
      (value) => stop.signal.aborted || set({ value }),
      (error) => stop.signal.aborted || set({ error }),
    );
    return () => stop.abort();
  }, [...inputs, turn]);
  return { ...state, reload: () => again(turn + 1) };
}

/** All items of a list of the API, which are shown as its pages come: `{value, error, reload}`. */
export function useAll(path) {
  const [state, set] = useState({});
  const [turn, again] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const see = (value) => stop.signal.aborted || set({ value });
    readAll(path, stop.signal, see).then(see, (error) => stop.signal.aborted || set({ error }));
    return () => stop.abort();
  }, [path, turn]);
  return { ...state, reload: () => again(turn + 1) };
}

/** The newest result of `load`, shortly after the last change of an input; an older one never replaces it.
 * Where `load` returns nothing, nothing changes. */
export function useLater(load, inputs, pause = 120) {
  const [state, set] = useState({});
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(
      () =>
        load(stop.signal)?.then(
          (value) => stop.signal.aborted || set({ value }),
          (error) => stop.signal.aborted || set({ error }),
        ),
      pause,
    );
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, inputs);
  return state;
}

/** An action of a button: while it runs the button waits, and its problem is kept. */
export function useAction(act) {
  const [state, set] = useState({});
  const run = async (...given) => {
    set({ busy: true });
    try {
      const result = await act(...given);
      set({});
      return result;
    } catch (error) {
      set({ error });
    }
  };
  return [run, state];
}

export function Fault({ error }) {
  if (!error) return null;
  return html`<div class="fault" role="alert">
    <strong>${error.title || "Something failed"}</strong>
    <p>${error.message}</p>
    ${
      error.errors?.length > 0 &&
      html`<ul>
      ${error.errors.map((one) => html`<li><code>${one.pointer || "/"}</code> ${one.detail}</li>`)}
    </ul>`
    }
    ${error.remedy && html`<p>${error.remedy}</p>`}
    ${error.request_id && html`<p class="soft">Request <code>${error.request_id}</code></p>`}
  </div>`;
}

/** What was loaded, by `show(value)`; meanwhile a line, or the problem. */
export function Loaded({ from, children }) {
  if (from.error) return html`<${Fault} error=${from.error} />`;
  if (from.value === undefined) return html`<p class="soft" role="status">Loading…</p>`;
  return children(from.value);
}

export function Page({ title, lead, actions, how, broad, children }) {
  const heading = useRef();
  useLayoutEffect(() => {
    // Before the page is painted: the focus never leaves a field that someone is in already.
    document.title = `${title} · Valiant`;
    heading.current.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [title]);
  return html`<main id="content" class=${broad ? "broad" : ""}>
    <div class="head">
      <h1 tabindex="-1" ref=${heading} dir="auto">${title}</h1>
      ${actions && html`<div class="actions">${actions}</div>`}
    </div>
    ${lead && html`<p class="lead">${lead}</p>`}
    ${children}
    ${how && html`<${How} ways=${how} />`}
  </main>`;
}

/** The same with curl, the Python client and the terminal, after a line that names the service, and the key if it wants
 * one. */
function How({ ways }) {
  const [opened, open] = useState(false);
  const me = useLoaded(async (signal) => (opened ? get("/v1/me", { signal }) : undefined), [opened]);
  return html`<details class="how" onToggle=${(event) => open(event.target.open)}>
    <summary>As code</summary>
    ${
      opened &&
      html`<${Loaded} from=${me}>${({ key }) =>
        Object.entries({
          First: `export VALIANT_URL=${location.origin}${key ? " VALIANT_KEY=vlt_…" : ""}`,
          ...ways,
          curl: key ? ways.curl.replaceAll(/^curl -sSN?/gm, `$& -H "Authorization: Bearer $VALIANT_KEY"`) : ways.curl,
        }).map(
          ([name, text]) => html`<section>
      <h3>${name}</h3>
      <${Copied} text=${text} />
    </section>`,
        )}</${Loaded}>`
    }
  </details>`;
}

export function Copied({ text }) {
  const [done, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    set(true);
    setTimeout(() => set(false), 2000);
  };
  return html`<div class="copied">
    <pre tabindex="0">${text}</pre>
    <button class="quiet" onClick=${copy}>${done ? "Copied" : "Copy"}</button>
  </div>`;
}

/** columns: [{name, show(row), number?}]; the first is the heading of its row. */
export function Table({ caption, columns, rows, empty = "Nothing yet." }) {
  if (!rows.length) return html`<p class="soft">${empty}</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}>
    <table>
      <caption class="hidden">${caption}</caption>
      <thead><tr>${columns.map((one, place) => html`<th scope="col" class=${one.number && place ? "number" : ""}>
        ${one.name}</th>`)}</tr></thead>
      <tbody>${rows.map(
        (row) => html`<tr>
        ${columns.map((one, place) =>
          place
            ? html`<td class=${one.number ? "number" : ""}>${one.show(row)}</td>`
            : html`<th scope="row">${one.show(row)}</th>`,
        )}
      </tr>`,
      )}</tbody>
    </table>
  </div>`;
}

/** Pages of a list of the API, by its cursors. */
export function usePages(address, get) {
  const [cursors, set] = useState([null]);
  const last = cursors[cursors.length - 1];
  const join = address.includes("?") ? "&" : "?";
  const loaded = useLoaded(
    (signal) => get(last ? `${address}${join}cursor=${encodeURIComponent(last)}` : address, { signal }),
    [address, last],
  );
  const next = loaded.value?.next_cursor;
  const pager =
    (cursors.length > 1 || next) &&
    html`<nav class="pager" aria-label="Pages">
    <button class="quiet" disabled=${cursors.length < 2} onClick=${() => set(cursors.slice(0, -1))}>Newer</button>
    <button class="quiet" disabled=${!next} onClick=${() => set([...cursors, next])}>Older</button>
  </nav>`;
  return [loaded, pager];
}

export const State = ({ of }) => html`<span class=${`state ${of}`}>${of.replace("_", " ")}</span>`;

export const Facts = ({ of }) => html`<dl class="facts">
  ${Object.entries(of)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => html`<div><dt>${name}</dt><dd dir="auto">${value}</dd></div>`)}
</dl>`;

/** A text as one word of a shell. */
export const inShell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const NAMES = new Map([
  [null, "None"],
  [true, "True"],
  [false, "False"],
]);
export const asPython = (value) => {
  if (NAMES.has(value)) return NAMES.get(value);
  if (Array.isArray(value)) return `[${value.map(asPython).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(JSON.parse(JSON.stringify(value)))
    .map(([name, part]) => `${JSON.stringify(name)}: ${asPython(part)}`)
    .join(", ")}}`;
};
/** curl that sends a body to an address of this service. */
export const curl = (path, body, method) => {
  const verb = method ? ` -X ${method}` : "";
  const sent = body ? ` -H 'Content-Type: application/json' \\\n  -d ${inShell(JSON.stringify(body))}` : "";
  return `curl -sS ${inShell(location.origin + path)}${verb}${sent}`;
};

export const number = (value) => {
  if (typeof value !== "number") return String(value ?? "");
  return Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(4)));
};

/** A valid name of a model from that of a file or a dataset. */
export const modelName = (text) =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 100) || "model";

export const when = (time) => new Date(time).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });

const UNITS = ["bytes", "KiB", "MiB", "GiB"];
export const size = (bytes) => {
  const step = Math.min(UNITS.length - 1, bytes > 0 ? Math.floor(Math.log2(bytes) / 10) : 0);
  return `${number(Number((bytes / 1024 ** step).toPrecision(3)))} ${UNITS[step]}`;
};

export const seconds = (value) => {
  if (value === undefined) return "";
  return value < 120 ? `${Number(value.toPrecision(2))} s` : `${Math.round(value / 60)} min`;
};

export const duration = (seconds) =>
  seconds < 1
    ? "under a second"
    : seconds < 90
      ? `about ${Math.round(seconds)} s`
      : `about ${Math.round(seconds / 60)} min`;
