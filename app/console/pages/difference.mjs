// Two datasets side by side: their columns, and where the values of a column lie apart.
import { get, part, readDatasets } from "../parts/api.mjs";
import { Histogram } from "../charts/small.mjs";
import { Facts, Loaded, Page, Table, asPython, curl, html, number, size, useLoaded } from "../parts/view.mjs";

const SHOWN = 100;

export function Difference({ named: [id], query }) {
  const other = query.get("with");
  const loaded = useLoaded(
    async (signal) => {
      const [list, first, second] = await Promise.all([
        readDatasets(signal),
        ...[id, other].map((one) => one && get(`/v1/datasets/${part(one)}`, { signal })),
      ]);
      return { others: list.filter((one) => one.id !== id), first, second };
    },
    [id, other],
  );
  return html`<${Loaded} from=${loaded}>${({ others, first, second }) => html`
    <${Page} title=${second ? `${first.name} and ${second.name}` : `${first.name} and another dataset`}
        lead="Columns by how far their values lie apart." how=${how([id, other].filter(Boolean))}
        actions=${html`<a class="button quiet" href=${`#/datasets/${first.id}`}>${first.name}</a>`}>
      <label class="inline">Other dataset <select value=${other ?? ""} onChange=${(event) => {
        location.hash = `#/datasets/${id}/difference?with=${event.target.value}`;
      }}>
        <option value="">choose one</option>${others.map((one) => html`<option value=${one.id}>
          ${`${one.name}, ${number(one.rows)} rows`}</option>`)}</select></label>
      ${second && html`<${Both} first=${first} second=${second} />`}
    </${Page}>`}</${Loaded}>`;
}

function Both({ first, second }) {
  const others = new Map(second.columns.map((one) => [one.name, one])),
    names = new Set(first.columns.map((one) => one.name));
  const pairs = first.columns
    .filter((one) => others.has(one.name))
    .map((one) => ({ a: one, b: others.get(one.name) }))
    .map((pair) => ({ ...pair, apart: apart(pair, first.rows, second.rows) }));
  const alone = [
    ...first.columns.filter((one) => !others.has(one.name)).map((one) => [one.name, first.name]),
    ...second.columns.filter((one) => !names.has(one.name)).map((one) => [one.name, second.name]),
  ];
  pairs.sort((one, two) => two.apart - one.apart);
  return html`
    <${Facts} of=${{
      Rows: `${number(first.rows)} and ${number(second.rows)}`,
      Columns: `${number(first.columns.length)} and ${number(second.columns.length)}`,
      Size: `${size(first.size_bytes)} and ${size(second.size_bytes)}`,
      "In both": number(pairs.length),
    }} />
    ${
      alone.length > 0 &&
      html`<h2>In one of them only</h2><${Table} caption="Columns in one dataset only" rows=${alone.slice(0, SHOWN)}
          columns=${[
        { name: "Column", show: ([name]) => html`<span dir="auto">${name}</span>` },
        { name: "Dataset", show: ([, name]) => html`<span dir="auto">${name}</span>` },
      ]} />`
    }
    <h2>In both</h2>
    <p class="soft">Apart is, for numbers, the distance of the medians in interquartile ranges; for categories the share
      of rows that would have to change their value; and the difference in missing values where that is more.</p>
    <${Table} caption="Columns in both datasets" rows=${pairs.slice(0, SHOWN)} columns=${[
      { name: "Column", show: ({ a }) => html`<span dir="auto">${a.name}</span>` },
      { name: "Apart", number: true, show: (pair) => number(Number(pair.apart.toFixed(3))) },
      {
        name: "Kind",
        show: ({ a, b }) => (a.kind === b.kind ? a.kind : html`<span class="wrong">${a.kind} and ${b.kind}</span>`),
      },
      {
        name: "Missing",
        number: true,
        show: ({ a, b }) => `${share(a.missing, first.rows)} and ${share(b.missing, second.rows)}`,
      },
      { name: first.name, show: ({ a }) => html`<${Values} of=${a} />` },
      { name: second.name, show: ({ b }) => html`<${Values} of=${b} />` },
    ]} />
    ${pairs.length > SHOWN && html`<p
        class="soft">The ${SHOWN} columns that lie farthest apart, of ${number(pairs.length)}.</p>`}`;
}

const share = (count, rows) => `${number(Number(((100 * count) / (rows || 1)).toPrecision(3)))} %`;

const Values = ({
  of: one,
}) => html`<div class="values">${one.histogram?.length > 0 && html`<${Histogram} bins=${one.histogram}
    name=${one.name} />`}
  <span class="soft" dir="auto">${
    one.median !== undefined
      ? `${number(one.minimum)} to ${number(one.maximum)}, median ${number(one.median)}`
      : (one.top_levels || [])
          .slice(0, 3)
          .map((top) => `${top.value} (${number(top.count)})`)
          .join(", ")
  }</span></div>`;

function apart({ a, b }, rows, others) {
  const gaps = Math.abs(a.missing / (rows || 1) - b.missing / (others || 1));
  if (a.kind !== b.kind) return 1;
  if (typeof a.median === "number" && typeof b.median === "number") {
    const width = Math.max(a.third_quartile - a.first_quartile, b.third_quartile - b.first_quartile);
    return Math.max(
      gaps,
      a.median === b.median ? 0 : Math.abs(a.median - b.median) / (width || Math.abs(a.median - b.median)),
    );
  }
  const counts = (one) =>
      new Map((one.top_levels || []).map((top) => [String(top.value), top.count / (one.count || 1)])),
    [p, q] = [counts(a), counts(b)];
  return Math.max(
    gaps,
    [...new Set([...p.keys(), ...q.keys()])].reduce(
      (sum, name) => sum + Math.abs((p.get(name) || 0) - (q.get(name) || 0)),
      0,
    ) / 2,
  );
}

const how = (ids) => ({
  curl: ids.map((id) => curl(`/v1/datasets/${id}`)).join("\n"),
  Python: `import valiant\n\nservice = valiant.connect()\ndatasets = [service.dataset(id) for id in ${asPython(ids)}]`,
  Terminal: ids.map((id) => `valiant datasets ${id}`).join("\n"),
});
