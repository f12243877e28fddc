// The dendrogram of an agglomerative clustering, whose cut is dragged, or moved with the arrow keys.
import { useMemo, useRef, useState } from "preact/hooks";
import { part, post } from "../parts/api.mjs";
import { Loaded, Table, html, number, useLater, useLoaded } from "../parts/view.mjs";

const HIGH = 18,
  TOP = 8,
  LEFT = 8,
  LABELS = 110,
  LEAVES = 30,
  CLUSTERS = 100;

const MAX_SIZES = 20;
const sizesOf = ({ sizes }) =>
  `${sizes.slice(0, MAX_SIZES).map(number).join(", ")} rows${sizes.length > MAX_SIZES ? ", …" : "."}`;

export function Dendrogram({ model, version }) {
  const address = `/v1/models/${part(model)}/cut?version=${version}`;
  const whole = useLoaded((signal) => post(address, { merges: true }, { signal }), [address]);
  return html`<section><h2>Cut the dendrogram</h2>
    <p class="soft">Drag the line, or move it with the arrow keys: merges to its left are made. The model itself keeps
      its clusters.</p>
    <${Loaded} from=${whole}>${(tree) => html`<${Cut} tree=${tree} address=${address} />`}</${Loaded}>
  </section>`;
}

/** Places of the topmost merges: leaves one below the other, a merge in the middle of the two that it joins. */
function laidOut({ merges, rows, items }) {
  const n = rows.length,
    first = n + Math.max(0, merges.length - LEAVES + 1),
    root = n + merges.length - 1;
  const nodes = new Map(merges.map((one) => [one.node, one])),
    places = new Map(),
    leaves = [],
    lines = [];
  const label = (node) =>
    node >= n ? `${number(nodes.get(node).size)} rows` : (items?.[node] ?? `row ${rows[node]}`);
  const place = (node) => {
    if (node < first) {
      places.set(node, { height: 0, y: leaves.length });
      leaves.push(label(node));
      return;
    }
    const { left, right, height } = nodes.get(node);
    place(left);
    place(right);
    const [a, b] = [places.get(left), places.get(right)];
    places.set(node, { height, y: (a.y + b.y) / 2 });
    lines.push([height, a.y, height, b.y], ...[a, b].map((one) => [one.height, one.y, height, one.y]));
  };
  place(root);
  return { leaves, lines };
}

function Cut({ tree, address }) {
  const { leaves, lines } = useMemo(() => laidOut(tree), [tree]);
  const heights = tree.merges.map((one) => one.height),
    most = heights[heights.length - 1],
    fewest = Math.max(0, heights.length + 1 - CLUSTERS);
  const between = (clusters) => {
    // a height at which so many clusters are left
    const place = heights.length - clusters;
    return ((heights[place] ?? 0) + (heights[place + 1] ?? 1.05 * most)) / 2;
  };
  const [height, move] = useState(between(tree.n_clusters));
  const clusters = 1 + heights.filter((one) => one > height).length;
  const wide = innerWidth < 768 ? 360 : 640,
    scale = (wide - LEFT - LABELS) / (1.05 * most || 1),
    x = (value) => LABELS + value * scale,
    y = (value) => TOP + HIGH * (value + 0.5);
  const { value: found } = useLater((signal) => post(address, { height }, { signal }), [address, height]),
    picture = useRef();
  const drag = (event) => {
    if (event.buttons !== 1) return;
    const box = picture.current.getBoundingClientRect();
    move(Math.min(1.05 * most, Math.max(0, ((wide * (event.clientX - box.left)) / box.width - LABELS) / scale)));
  };
  const start = (event) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    drag(event);
  };
  const high = 2 * TOP + HIGH * leaves.length;
  return html`<div class="card">
    <svg class="dendrogram" ref=${picture} viewBox=${`0 0 ${wide} ${high}`} role="img"
        aria-label=${`Dendrogram of ${number(tree.rows.length)} rows, cut into ${number(clusters)} clusters.`}
            onPointerDown=${start} onPointerMove=${drag}>
      ${lines.map(([x0, y0, x1, y1]) => html`<line
          class=${x1 > height && x0 === x1 ? "above" : "below"} x1=${x(x0)} y1=${y(y0)} x2=${x(x1)} y2=${y(y1)} />`)}
      ${leaves.map((text, place) => html`<text x=${LABELS - 6} y=${y(place) + 4} text-anchor="end">
        ${text.length > 16 ? `${text.slice(0, 15)}…` : text}</text>`)}
      <line class="cut" x1=${x(height)} x2=${x(height)} y1="0" y2=${high} />
    </svg>
    <label class="inline">Clusters <input type="range" aria-label="Clusters" min="1"
        max=${heights.length + 1 - fewest} value=${clusters}
            onInput=${(event) => move(between(Number(event.target.value)))} />
      <output>${number(clusters)}</output></label>
    <p class="soft" aria-live="polite">
      ${`Height ${number(height)}.`}${found && ` The clusters have ${sizesOf(found)}`}</p>
    ${
      found &&
      html`<details><summary>As a table</summary><${Table} caption="Clusters of the cut"
          rows=${found.sizes.slice(0, 100).map((size, place) => [place, size])} columns=${[
        { name: "Cluster", show: ([place]) => place },
        { name: "Rows", number: true, show: ([, size]) => number(size) },
      ]} /></details>`
    }
  </div>`;
}
