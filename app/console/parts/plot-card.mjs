// A plot of a version: drawn when it comes into view, beside it the same in words and as a table.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, send } from "./api.mjs";
import { Fault, Table, html, number } from "./view.mjs";

const MAX_TABLE_ROWS = 100;
const FORMATS = { svg: "image/svg+xml", png: "image/png" };

/** Saves a plot as a file of this media type. */
async function save(address, type, name) {
  const picture = await (await send("GET", `${address}?theme=light`, { headers: { Accept: type } })).blob();
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(picture), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href));
}

/** @param {{address: string, plot: {title: string, description: string}, title?: string}} props */
export function PlotCard({ address, plot, title = plot.title }) {
  const place = useRef();
  const figure = useRef();
  const [state, set] = useState({});
  const [wide, widen] = useState(false);
  useEffect(() => {
    let view;
    const seen = new IntersectionObserver(
      async ([entry]) => {
        if (!entry.isIntersecting) return;
        seen.disconnect();
        try {
          const [{ draw }, specification] = await Promise.all([
            import("../charts/plot.mjs"),
            get(`${address}?theme=${theme()}`),
          ]);
          view = await draw(place.current, specification);
          set({ specification });
        } catch (error) {
          set({ error });
        }
      },
      { rootMargin: "400px" },
    );
    seen.observe(place.current);
    return () => {
      seen.disconnect();
      view?.finalize();
    };
  }, [address, wide]);
  useEffect(() => {
    const follow = () => widen(document.fullscreenElement === figure.current);
    document.addEventListener("fullscreenchange", follow);
    return () => document.removeEventListener("fullscreenchange", follow);
  }, []);
  const words = plot.description.split("\n\n")[0];
  return html`<figure class="card plot" ref=${figure}>
    <figcaption><h3>${title}</h3><p class="soft">${words}</p></figcaption>
    <div class="drawn" ref=${place} role="img" aria-label=${`${title}. ${words}`}></div>
    <${Fault} error=${state.error} />
    ${state.specification && html`<div class="under">
      <${Twin} of=${state.specification} title=${plot.title} />
      <span class="saves">
        <button class="quiet" onClick=${() => (wide ? document.exitFullscreen() : figure.current.requestFullscreen())}>
          ${wide ? "Close" : "Full screen"}</button>
        ${Object.entries(FORMATS).map(
          ([name, type]) => html`<button class="quiet" onClick=${() => save(address, type, `${plot.title}.${name}`)}>
            ${name.toUpperCase()}</button>`,
        )}
        <a href=${`data:application/json,${encodeURIComponent(JSON.stringify(state.specification))}`}
          download=${`${plot.title}.vl.json`}>Vega-Lite</a>
      </span></div>`}
  </figure>`;
}

const theme = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

/** The values of a plot: of itself, of a named dataset, or of a layer. */
const valuesOf = (specification) =>
  [
    specification.data?.values,
    ...Object.values(specification.datasets || {}),
    ...(specification.layer || []).map((layer) => layer.data?.values),
  ].find((values) => Array.isArray(values) && values.length) || [];

function Twin({ of, title }) {
  const [open, toggle] = useState(false);
  const rows = open ? valuesOf(of).slice(0, MAX_TABLE_ROWS) : [];
  const columns = Object.keys(rows[0] || {}).map((name) => ({
    name,
    number: typeof rows[0][name] === "number",
    show: (row) => number(row[name]),
  }));
  return html`<details onToggle=${(event) => toggle(event.target.open)}><summary>As a table</summary>
    ${open && html`<${Table} caption=${title} rows=${rows} columns=${columns} />`}</details>`;
}
