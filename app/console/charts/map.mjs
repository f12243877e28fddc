// A self-organising map: its planes side by side; the cell that is pointed at is marked in all of them.
import { useState } from "preact/hooks";
import { part, post } from "../parts/api.mjs";
import { Facts, Loaded, html, number, useLoaded } from "../parts/view.mjs";

const PLANES = 11,
  SIDE = 12;

export function CellMap({ model, version, inputs }) {
  const columns = inputs.slice(0, PLANES).map((one) => one.name);
  const loaded = useLoaded(
    (signal) => post(`/v1/models/${part(model)}/planes?version=${version}`, { columns }, { signal }),
    [model, version],
  );
  return html`<section><h2>Map</h2><p
      class="soft">Point at a cell, or move the mark with the arrow keys: it is the same cell in every plane.</p>
    <${Loaded} from=${loaded}>${(map) => html`<${Planes} of=${map} />`}</${Loaded}>
    ${inputs.length > PLANES && html`<p class="soft">${`The first ${PLANES} of ${number(inputs.length)} columns.`}</p>`}
  </section>`;
}

function Planes({ of: map }) {
  const [cell, mark] = useState(0);
  const planes = [{ column: "Distance to the neighbours", values: map.u_matrix }, ...map.planes];
  const move = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -map.grid_width, ArrowDown: map.grid_width }[event.key];
    if (!step) return;
    event.preventDefault();
    mark(Math.min(map.x.length - 1, Math.max(0, cell + step)));
  };
  const named = map.given_names?.[cell] ?? map.names?.[cell];
  return html`<div class="card" tabindex="0" role="application"
      aria-label=${`Planes of a map of ${map.grid_height} by ${map.grid_width} cells`} onKeyDown=${move}>
    <ul class="planes">${planes.map((plane) => html`<${Plane} of=${plane} map=${map} cell=${cell} mark=${mark} />`)}
      </ul>
    <div aria-live="polite"><${Facts} of=${{
      Cell: `${cell}, row ${Math.floor(cell / map.grid_width)}, column ${cell % map.grid_width}`,
      Name: named,
      Rows: number(map.hits[cell]),
      ...Object.fromEntries(planes.map((one) => [one.column, number(one.values[cell])])),
    }} /></div>
  </div>`;
}

/** A number is stronger the larger it is; a category has a shade for each, in the order of their names. */
function Plane({ of: plane, map, cell, mark }) {
  const known = plane.values.filter((one) => one !== null),
    numbers = known.every((one) => typeof one === "number");
  const names = numbers ? [] : [...new Set(known.map(String))].sort(),
    low = numbers ? Math.min(...known) : 0,
    high = numbers ? Math.max(...known) : names.length - 1;
  const shade = (value) =>
    value === null ? 0 : 0.08 + (0.92 * ((numbers ? value : names.indexOf(String(value))) - low)) / (high - low || 1);
  const square = map.topology === "square",
    tall = square ? SIDE : SIDE * 0.5774;
  const points = (x, y) =>
    square
      ? [
          [-0.5, -0.5],
          [0.5, -0.5],
          [0.5, 0.5],
          [-0.5, 0.5],
        ].map(([a, b]) => [x + a * SIDE, y + b * SIDE])
      : [0, 1, 2, 3, 4, 5].map((turn) => [
          x + tall * Math.sin((turn * Math.PI) / 3),
          y + tall * Math.cos((turn * Math.PI) / 3),
        ]);
  const wide = SIDE * (Math.max(...map.x) + 1) + 2,
    long = SIDE * Math.max(...map.y) + 2 * SIDE;
  return html`<li><h3 dir="auto">${plane.column}</h3>
    <svg viewBox=${`${-SIDE / 2 - 1} ${-SIDE} ${wide} ${long}`} role="img"
        aria-label=${`Plane of ${plane.column}: ${
          numbers ? `from ${number(low)} to ${number(high)}` : names.slice(0, 12).join(", ")
        }.`}>
      ${plane.values.map(
        (
          value,
          place,
        ) => html`<polygon class=${place === cell ? "cell marked" : "cell"} fill-opacity=${shade(value).toFixed(3)}
            onPointerEnter=${() => mark(place)}
        points=${points(SIDE * map.x[place], SIDE * map.y[place])
          .map((one) => one.map((at) => at.toFixed(1)).join(","))
          .join(" ")}><title>${`Cell ${place}: ${value === null ? "no value" : number(value)}`}</title></polygon>`,
      )}
    </svg>
    <p class="soft">${numbers ? `${number(low)} (faint) to ${number(high)} (strong)` : names.slice(0, 4).join(", ")}
      </p></li>`;
}
