// A table of thousands of rows: search, order by a column, ticks, and only the rows in sight in the page.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { MAX_ITEMS } from "./api.mjs";
import { html, number } from "./view.mjs";

/** Rows up to which all are in the page; and rows in the page above and below those in sight. */
const MAX_WHOLE = 60;
const MARGIN = 10;
const ROW_PIXELS = 38;

/**
 * A column of a grid.
 * @typedef {object} Column
 * @property {string} name heading, and name in a search such as `rmse<3`
 * @property {(row: any) => any} [value] by which rows are ordered and found: a number, a text or nothing
 * @property {(row: any) => any} [show] markup of the cell; the value without it
 * @property {boolean} [number] whether cells are aligned as numbers
 */

/** Terms of a search: `{text}`, or `{name, relation, limit}` of a number such as `accuracy>0.9`. */
export const readTerms = (search) =>
  search
    .trim()
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((term) => {
      const [, name, relation, limit] = term.match(/^(.+?)(<=|>=|<|>|=)(.+)$/) || [];
      return name ? { name, relation, limit } : { text: term };
    });

const HOLDS = {
  "<": (value, limit) => value < limit,
  ">": (value, limit) => value > limit,
  "<=": (value, limit) => value <= limit,
  ">=": (value, limit) => value >= limit,
};

const textOf = (value) => (value === undefined || value === null ? "" : String(value).toLowerCase());

/** Whether a row has a term: in any of its values, or in that of the column that the term names. */
const hasTerm = (columns, row, { text, name, relation, limit }) => {
  if (text) return columns.some((column) => textOf(column.value?.(row)).includes(text));
  return columns.some((column) => {
    if (!column.name.toLowerCase().replaceAll(" ", "_").includes(name)) return false;
    const value = column.value?.(row);
    if (relation === "=") return textOf(value).includes(limit);
    return typeof value === "number" && HOLDS[relation](value, Number(limit));
  });
};

/** Numbers by size, texts by alphabet; what has no value comes last. */
const compare = (one, other, down) => {
  const [first, second] = [one ?? "", other ?? ""];
  if (first === second) return 0;
  if (first === "" || second === "") return first === "" ? 1 : -1;
  const order =
    typeof first === "number" && typeof second === "number"
      ? first - second
      : String(first).localeCompare(String(second), "en", { numeric: true });
  return down ? -order : order;
};

const sorted = (rows, column, down) =>
  column ? [...rows].sort((one, other) => compare(column.value(one), column.value(other), down)) : rows;

/**
 * @param {object} props
 * @param {string} props.caption
 * @param {Column[] | ((rows: any[]) => Column[])} props.columns or those of the rows that a search leaves
 * @param {any[]} props.rows
 * @param {(row: any) => string} props.rowKey
 * @param {Column[]} [props.hidden] further values that a search finds
 * @param {Set<string>} [props.ticked] keys of ticked rows; without it rows cannot be ticked
 * @param {(keys: Set<string>) => void} [props.tick]
 * @param {(row: any) => boolean} [props.canTick]
 * @param {any} [props.tools] beside the search
 */
export function Grid({ caption, columns, rows, rowKey, hidden = [], ticked, tick, canTick, tools, empty }) {
  const [search, find] = useState("");
  const [order, arrange] = useState({});
  const fixed = typeof columns === "function" ? columns(rows) : columns;
  const left = useMemo(() => {
    const terms = readTerms(search);
    return terms.length
      ? rows.filter((row) => terms.every((term) => hasTerm([...fixed, ...hidden], row, term)))
      : rows;
  }, [rows, search, fixed.length]);
  const shown = typeof columns === "function" ? columns(left) : columns;
  const by = shown.find((column) => column.name === order.name);
  const ordered = useMemo(() => sorted(left, by, order.down), [left, order, by?.name]);
  const turn = (column) =>
    arrange(({ name, down }) => {
      if (name !== column.name) return { name: column.name, down: Boolean(column.number) };
      return down === Boolean(column.number) ? { name, down: !down } : {};
    });
  const searched = rows.length > 5 || search;
  return html`<div class="grid">
    ${(searched || tools) && html`<div class="tools">
      ${searched && html`<label>Search <input type="search" value=${search} placeholder="words, or rmse<3"
        onInput=${(event) => find(event.target.value)} /></label>`}
      ${tools}
      ${searched && html`<span class="soft" role="status">
        ${left.length < rows.length && `${number(left.length)} of ${number(rows.length)}`}
        ${left.length === rows.length && `${number(rows.length)} rows`}
      </span>`}
    </div>`}
    ${rows.length >= MAX_ITEMS && html`<p class="soft">The first ${number(MAX_ITEMS)} are listed; the API has all.</p>`}
    ${ordered.length
      ? html`<${Body} caption=${caption} columns=${shown} rows=${ordered} rowKey=${rowKey} order=${order} turn=${turn}
          ticked=${ticked} tick=${tick} canTick=${canTick} />`
      : html`<p class="soft">${search ? "Nothing is found." : empty || "Nothing yet."}</p>`}
  </div>`;
}

/** The rows in sight of the scrolled part, as `[first, end]`. */
function useWindow(count, box) {
  const [[first, end], see] = useState([0, MAX_WHOLE]);
  const isWhole = count <= MAX_WHOLE;
  const look = () => {
    const { scrollTop, clientHeight } = box.current;
    const top = Math.max(0, Math.floor(scrollTop / ROW_PIXELS) - MARGIN);
    see([top, top + Math.ceil(clientHeight / ROW_PIXELS) + 2 * MARGIN]);
  };
  useLayoutEffect(() => {
    if (!isWhole) look();
  }, [count, isWhole]);
  return isWhole ? [0, count, undefined] : [Math.min(first, Math.max(0, count - MARGIN)), Math.min(end, count), look];
}

function Body({ caption, columns, rows, rowKey, order, turn, ticked, tick, canTick = () => true }) {
  const box = useRef();
  const [first, end, look] = useWindow(rows.length, box);
  const mark = (row) => {
    const next = new Set(ticked);
    if (!next.delete(rowKey(row))) next.add(rowKey(row));
    tick(next);
  };
  const space = (count) =>
    count > 0 && html`<tr class="space" aria-hidden="true" style=${{ height: `${count * ROW_PIXELS}px` }}></tr>`;
  return html`<div class=${look ? "scroll long" : "scroll"} tabindex="0" role="region" aria-label=${caption} ref=${box}
      onScroll=${look}>
    <table aria-rowcount=${rows.length + 1}>
      <caption class="hidden">${caption}</caption>
      <thead><tr>
        ${ticked && html`<th scope="col"><span class="hidden">Ticked</span></th>`}
        ${columns.map((column) => html`<${Heading} column=${column} order=${order} turn=${turn} />`)}
      </tr></thead>
      <tbody>
        ${space(first)}
        ${rows.slice(first, end).map(
          (row, place) => html`<tr key=${rowKey(row)} aria-rowindex=${first + place + 2}>
            ${ticked && html`<td>${canTick(row) && html`<input type="checkbox" checked=${ticked.has(rowKey(row))}
              onChange=${() => mark(row)} aria-label=${`Tick ${rowKey(row)}`} />`}</td>`}
            ${columns.map((column, at) => html`<${Cell} column=${column} row=${row} isFirst=${at === 0} />`)}
          </tr>`,
        )}
        ${space(rows.length - end)}
      </tbody>
    </table>
  </div>`;
}

function Heading({ column, order, turn }) {
  const sort = order.name === column.name ? (order.down ? "descending" : "ascending") : null;
  return html`<th scope="col" class=${column.number ? "number" : ""} aria-sort=${sort}>
    ${column.value
      ? html`<button class="sort" onClick=${() => turn(column)}>${column.name}
          <span aria-hidden="true">${{ descending: " ↓", ascending: " ↑" }[sort] || ""}</span></button>`
      : column.name}</th>`;
}

function Cell({ column, row, isFirst }) {
  const value = column.show ? column.show(row) : column.value(row);
  const text = typeof value === "number" ? number(value) : value;
  const kind = column.number ? "number" : "";
  return isFirst ? html`<th scope="row" class=${kind}>${text}</th>` : html`<td class=${kind}>${text}</td>`;
}
