// The report of a version: metrics with their intervals, guarantees, plots, receipt.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, part, post } from "./api.mjs";
import { Interval } from "./charts.mjs";
import { Clusters } from "./clusters.mjs";
import { Dendrogram } from "./dendrogram.mjs";
import { CellMap } from "./map.mjs";
import { promote } from "./models.mjs";
import { Scatter } from "./scatter.mjs";
import { Copied, Facts, Fault, Loaded, Page, Table, curl, html, number, size, useAction, useLoaded, when } from "./view.mjs";

/** Training rows up to which all merges of a dendrogram are read. */
const ROWS = 10_000;
const at = (model, version) => `/v1/models/${part(model)}/versions/${version}`;

export function Version({ named: [name, version] }) {
  const loaded = useLoaded(async (signal) => {
    const addresses = [`/v1/models/${part(name)}`, at(name, version), `${at(name, version)}/report`, `${at(name, version)}/plots`];
    const [model, one, report, plots] = await Promise.all(addresses.map((address) => get(address, { signal })));
    return { model, one, report, plots: plots.items };
  }, [name, version]);
  const [act, { error, busy }] = useAction(async (change) => { await change(); loaded.reload(); });
  const [again, repeated] = useAction(async () => { location.hash = `#/jobs/${(await post(`${at(name, version)}/reproduce`)).id}`; });
  return html`<${Loaded} from=${loaded}>${({ model, one, report, plots }) => {
    const drawn = new Set(plots.map((plot) => plot.name)), rows = report.row_sample;
    const aliases = model.aliases.filter((alias) => alias.version === one.version).map((alias) => alias.alias);
    return html`<${Page} title=${`${name}, version ${version}`} lead=${report.evidence} how=${how(one)} actions=${html`
        <a class="button" href=${`#/models/${part(name)}/${version}/try`}>Try it</a>
        ${drawn.has("tree_diagram") && html`<a class="button quiet" href=${`#/models/${part(name)}/${version}/tree`}>Tree</a>`}
        <button class="quiet" disabled=${busy || aliases.includes("champion")} onClick=${() => act(() => promote(model, one.version))}>
          ${aliases.includes("champion") ? "Is the champion" : "Promote to champion"}</button>`}>
      <${Fault} error=${error || repeated.error} />
      <${Facts} of=${{ Algorithm: one.algorithm, Task: one.task, Target: one.target, Aliases: aliases.join(", ") || undefined, Created: when(one.created_at), Size: size(one.size_bytes) }} />
      ${report.warnings.map((text) => html`<p class="warning">${text}</p>`)}
      <${Metrics} title="Test rows" of=${report.test} />
      <${Metrics} title="Training rows" of=${report.train} folded=${report.test.length > 0} />
      <${Guarantees} of=${report.guarantees} />
      ${one.task === "clustering" && html`<${Clusters} model=${name} version=${version} />`}
      ${drawn.has("dendrogram_diagram") && report.rows_train <= ROWS && html`<${Dendrogram} model=${name} version=${version} />`}
      ${drawn.has("map_planes") && html`<${CellMap} model=${name} version=${version} inputs=${one.inputs} />`}
      ${rows?.axes.length > 1 && html`<${Scatter} sample=${rows} dataset=${one.dataset} />`}
      ${plots.length > 0 && html`<section><h2>Plots</h2><div class="plots">
        ${plots.map((plot) => html`<${Plot} address=${`${at(name, version)}/plots/${part(plot.name)}`} plot=${plot} />`)}
      </div></section>`}
      <section><h2>Receipt</h2>
        ${one.receipt.file_format
          ? html`<p class="soft">Imported from a file of ${one.receipt.file_format}, whose digest is in the receipt. The version has the digest <code>${one.digest}</code></p>`
          : html`<p class="soft">The same receipt gives the same bytes: <code>${one.digest}</code></p>
              <button class="quiet" onClick=${again} disabled=${repeated.busy}>Make it again from the receipt</button>`}
        <details><summary>Show the receipt</summary><${Copied} text=${JSON.stringify(one.receipt, null, 1)} /></details>
      </section>
    </${Page}>`;
  }}</${Loaded}>`;
}

const named = (metric) => metric.label === undefined ? metric.name + (metric.average ? ` (${metric.average})` : "") : `${metric.name} of ${metric.label}`;

function Metrics({ title, of, folded }) {
  if (!of.length) return null;
  const table = html`<${Table} caption=${title} rows=${of} columns=${[
    { name: "Metric", show: (one) => html`<span dir="auto">${named(one)}</span>` },
    { name: "Value", show: (one) => one.display },
    { name: "Interval", show: (one) => html`<${Scaled} metric=${one} />` },
    { name: "Rows", number: true, show: (one) => number(one.n) },
  ]} />`;
  return folded ? html`<details><summary>${title}</summary>${table}</details>` : html`<section><h2>${title}</h2>${table}</section>`;
}

/** On a scale from 0 to 1 where it fits, else from its own interval. */
function Scaled({ metric }) {
  if (metric.value === null || metric.value === undefined) return "";
  const ends = [metric.value, metric.lower ?? metric.value, metric.upper ?? metric.value];
  const share = Math.min(...ends) >= 0 && Math.max(...ends) <= 1;
  const [lower, upper] = share ? [0, 1] : [Math.min(0, ...ends), Math.max(0, ...ends)];
  const words = metric.lower === undefined ? "" : `${number(metric.lower)} to ${number(metric.upper)}`;
  return html`<span class="scaled"><${Interval} metric=${metric} lower=${lower} upper=${upper} /><span class="soft">${words}</span></span>`;
}

const Guarantees = ({ of }) => of?.certificates?.length > 0 && html`<section><h2>Guarantees</h2>
  <ul class="guarantees">${of.certificates.map((one) => html`<li class="card"><h3>${one.name.replaceAll("_", " ")}</h3><p>${one.statement}</p><p class="soft">${one.source}</p></li>`)}</ul>
</section>`;

/** Drawn when it comes into view; beside it the same as words and as a table. */
function Plot({ address, plot }) {
  const place = useRef(), [state, set] = useState({});
  useEffect(() => {
    let view;
    const seen = new IntersectionObserver(async ([entry]) => {
      if (!entry.isIntersecting) return;
      seen.disconnect();
      try {
        const dark = matchMedia("(prefers-color-scheme: dark)").matches;
        const [{ draw }, specification] = await Promise.all([import("./plot.mjs"), get(`${address}?theme=${dark ? "dark" : "light"}`)]);
        view = await draw(place.current, specification);
        set({ specification });
      } catch (error) {
        set({ error });
      }
    }, { rootMargin: "400px" });
    seen.observe(place.current);
    return () => { seen.disconnect(); view?.finalize(); };
  }, [address]);
  return html`<figure class="card plot">
    <figcaption><h3>${plot.title}</h3><p class="soft">${plot.description.split("\n\n")[0]}</p></figcaption>
    <div class="drawn" ref=${place} role="img" aria-label=${`${plot.title}. ${plot.description.split("\n\n")[0]}`}></div>
    <${Fault} error=${state.error} />
    ${state.specification && html`<${Twin} of=${state.specification} title=${plot.title} />`}
  </figure>`;
}

/** The values of a plot as a table. */
function Twin({ of, title }) {
  const [open, toggle] = useState(false);
  const values = () => [of.data?.values, ...Object.values(of.datasets || {}), ...(of.layer || []).map((one) => one.data?.values)].find((one) => Array.isArray(one) && one.length) || [];
  const rows = open ? values().slice(0, 100) : [];
  return html`<details onToggle=${(event) => toggle(event.target.open)}><summary>As a table</summary>
    ${open && html`<${Table} caption=${title} rows=${rows} columns=${Object.keys(rows[0] || {}).map((name) => ({ name, number: typeof rows[0][name] === "number", show: (row) => number(row[name]) }))} />`}
    <a href=${`data:application/json,${encodeURIComponent(JSON.stringify(of))}`} download=${`${title}.vl.json`}>Save as Vega-Lite</a>
  </details>`;
}

const how = (one) => ({
  curl: curl(`${at(one.model, one.version)}/report`),
  Python: `import valiant\n\nversion = valiant.connect().model(${JSON.stringify(one.model)}).version(${one.version})\nversion.report`,
  Terminal: `valiant report ${one.model} --version ${one.version} -o report.html`,
});
