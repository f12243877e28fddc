// Training rows on two axes; the rows within a rectangle that is dragged are listed with their cells.
import { useMemo, useRef, useState } from "preact/hooks";
import { get, part } from "../parts/api.mjs";
import { Loaded, Table, html, number, useLater } from "../parts/view.mjs";

const W = 560,
  H = 400,
  EDGE = 14,
  LISTED = 20,
  STEP = 0.05,
  PAUSE = 200;

export function Scatter({ sample, dataset }) {
  const points = useMemo(() => placed(sample), [sample]);
  const [brush, set] = useState(),
    start = useRef(),
    picture = useRef();
  const within = brush
    ? points.filter(({ x, y }) => x >= brush[0] && x <= brush[2] && y >= brush[1] && y <= brush[3])
    : [];
  const at = (event) => {
    const box = picture.current.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  const spanned = ([a, b], [c, d]) => [Math.min(a, c), Math.min(b, d), Math.max(a, c), Math.max(b, d)];
  const begin = (event) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    start.current = at(event);
    set();
  };
  const drag = (event) => {
    if (event.buttons === 1 && start.current) set(spanned(start.current, at(event)));
  };
  const press = (event) => {
    const [dx, dy] =
      { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key] || [];
    if (event.key === "Escape") set();
    if (dx === undefined) return;
    event.preventDefault();
    const [a, b, c, d] = brush || [0.4, 0.4, 0.6, 0.6];
    set(
      event.shiftKey
        ? [a, b, Math.max(a, c + dx), Math.max(b, d + dy)]
        : brush
          ? [a + dx, b + dy, c + dx, d + dy]
          : [a, b, c, d],
    );
  };
  const groups = [...new Set(points.map((one) => one.group))].sort();
  const names = sample.axes.slice(0, 2).map((one) => one.name);
  return html`<section><h2>Rows on the first two axes</h2>
    <p class="soft">Drag over points to list their rows. With the keyboard: arrows move a rectangle, with Shift they
      resize it, Escape ends.</p>
    <div class="card">
      <svg class="scatter" ref=${picture} viewBox=${`0 0 ${W} ${H}`} tabindex="0" role="application"
          aria-label=${[
            `${points.length} rows, ${names[0]} across and ${names[1]} upwards;`,
            `${within.length} in the rectangle.`,
          ].join(" ")}
          onPointerDown=${begin} onPointerMove=${drag} onKeyDown=${press}>
        ${points.map(({ x, y, group }) => html`<${Mark} x=${x * W} y=${y * H} shape=${groups.indexOf(group) % 6} />`)}
        ${brush && html`<rect class="brush" x=${brush[0] * W} y=${brush[1] * H} width=${(brush[2] - brush[0]) * W}
            height=${(brush[3] - brush[1]) * H} />`}
      </svg>
      ${groups[0] !== "" && html`<ul class="legend">${groups.slice(0, 12).map((one, place) => html`<li><svg
          viewBox="0 0 16 12" aria-hidden="true"><${Mark} x=${8} y=${6} shape=${place % 6} /></svg>${one}</li>`)}</ul>`}
      <div aria-live="polite">${within.length > 0 && html`<${Listed} rows=${within} dataset=${dataset} />`}</div>
    </div>
  </section>`;
}

/** Points with places from 0 to 1, and the class or else the cluster of each row. */
function placed({ axes, rows, classes, clusters }) {
  const [xs, ys] = axes.slice(0, 2).map((one) => one.values),
    labels = classes || clusters;
  const known = rows
    .map((row, place) => ({ row, a: xs[place], b: ys[place], group: labels ? String(labels[place] ?? "none") : "" }))
    .filter((one) => one.a !== null && one.b !== null);
  const scale = (values, length) => {
    const [low, high] = [Math.min(...values), Math.max(...values)],
      edge = EDGE / length;
    return (value) => edge + ((1 - 2 * edge) * (value - low)) / (high - low || 1);
  };
  const [across, up] = [
    scale(
      known.map((one) => one.a),
      W,
    ),
    scale(
      known.map((one) => one.b),
      H,
    ),
  ];
  return known.map((one) => ({ ...one, x: across(one.a), y: 1 - up(one.b) }));
}

const SHAPES = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
  "M-3.5-3.5h7v7h-7z",
  "M0-4.5l4.5 8h-9z",
  "M0-4.8l4.8 4.8l-4.8 4.8l-4.8-4.8z",
  "M-4-1.2h2.8v-2.8h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8z",
  "M0 4.5l4.5-8h-9z",
];
const Mark = ({ x, y, shape }) =>
  html`<path class=${`area-${shape}`} transform=${`translate(${x.toFixed(1)} ${y.toFixed(1)})`} d=${SHAPES[shape]} />`;

/** The first rows of a selection, as the dataset has them. */
function Listed({ rows, dataset }) {
  const some = rows.slice(0, LISTED).map((one) => one.row);
  const loaded = useLater(
    async (signal) => {
      const pages = await Promise.all(
        some.map((row) => get(`/v1/datasets/${part(dataset)}/rows?offset=${row}&limit=1`, { signal })),
      );
      return {
        columns: pages[0]?.columns.slice(0, 30) || [],
        rows: pages.map((page) => [page.offset, ...page.data[0]]),
      };
    },
    [some.join()],
    PAUSE,
  );
  const counts = Object.entries(Object.groupBy(rows, (one) => one.group))
    .filter(([group]) => group !== "")
    .map(([group, some]) => `${some.length} of ${group}`);
  return html`<p>
    ${`${number(rows.length)} rows${counts.length ? `: ${counts.join(", ")}` : ""}.`}
    ${rows.length > LISTED ? ` The first ${LISTED}:` : ""}</p>
    <${Loaded} from=${loaded}>${(page) =>
      html`<${Table} caption="Rows of the selection" rows=${page.rows} columns=${["Row", ...page.columns].map(
        (name, place) => ({
          name,
          number: typeof page.rows[0]?.[place] === "number",
          show: (row) =>
            row[place] === null
              ? html`<span class="soft">missing</span>`
              : html`<span dir="auto">${number(row[place])}</span>`,
        }),
      )} />`}</${Loaded}>`;
}
