// Small pictures drawn as SVG: a histogram, an interval, a line. Each states in words what it shows.
import { html, number } from "../parts/view.mjs";

const W = 240,
  H = 56;

export function Histogram({ bins, name }) {
  const most = Math.max(...bins.map((bin) => bin.count)),
    wide = W / bins.length;
  const ends = `from ${number(bins[0].lower)} to ${number(bins[bins.length - 1].upper)}`;
  const label = `Histogram of ${name}: ${bins.length} bins ${ends}, at most ${number(most)} rows in one.`;
  return html`<svg class="histogram" viewBox=${`0 0 ${W} ${H}`} role="img" aria-label=${label}
      preserveAspectRatio="none">
    ${bins.map((bin, place) => {
      const high = (H * bin.count) / most;
      return html`<rect x=${place * wide + 0.5} y=${H - high} width=${Math.max(wide - 1, 0.5)} height=${high}><title>
        ${`${number(bin.lower)} to ${number(bin.upper)}: ${number(bin.count)} rows`}</title></rect>`;
    })}
  </svg>`;
}

/** A value with its interval, on a scale from `lower` to `upper`. */
export function Interval({ metric, lower, upper }) {
  const at = (value) => 4 + (152 * (Math.min(Math.max(value, lower), upper) - lower)) / (upper - lower || 1);
  const has = metric.lower !== undefined && metric.upper !== undefined;
  return html`<svg class="interval" viewBox="0 0 160 16" aria-hidden="true">
    <line class="scale" x1="4" x2="156" y1="8" y2="8" />
    ${has && html`<line class="range" x1=${at(metric.lower)} x2=${at(metric.upper)} y1="8" y2="8" />`}
    <circle cx=${at(metric.value)} cy="8" r="3.5" />
  </svg>`;
}

/** A number as a bar to the left or the right of zero, on a scale that ends at `most` on both sides. */
export function Signed({ value, most }) {
  const long = (76 * Math.abs(value)) / (most || 1);
  return html`<svg class="interval" viewBox="0 0 160 16" aria-hidden="true">
    <line class="scale" x1="80" x2="80" y1="1" y2="15" />
    <rect class=${value < 0 ? "less" : "more"} x=${value < 0 ? 80 - long : 80} width=${long} y="4" height="8" />
  </svg>`;
}

/** series: [{name, x, y}], on common axes. range: ends of the vertical one; without it those of the values. */
export function Lines({ series, title, x = "", range, high = 180 }) {
  const wide = 480,
    left = 64,
    bottom = 24,
    top = 10;
  const xs = series.flatMap((one) => one.x),
    ys = series.flatMap((one) => one.y).filter(Number.isFinite);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)],
    [y0, y1] = range || [Math.min(...ys), Math.max(...ys)];
  const px = (value) => left + ((wide - left - 8) * (value - x0)) / (x1 - x0 || 1);
  const py = (value) => top + (high - bottom - top) * (1 - (value - y0) / (y1 - y0 || 1));
  const path = (one) =>
    one.x
      .map((value, place) => `${place ? "L" : "M"}${px(value).toFixed(1)} ${py(one.y[place]).toFixed(1)}`)
      .join("");
  const words = series
    .map((one) => `${one.name} from ${number(one.y[0])} to ${number(one.y[one.y.length - 1])}`)
    .join("; ");
  return html`<figure class="lines"><figcaption>${title}</figcaption>
    <svg viewBox=${`0 0 ${wide} ${high}`} role="img" aria-label=${`${title}: ${words}.`}>
      <text x=${left - 6} y=${py(y1) + 4} text-anchor="end">${number(y1)}</text>
      <text x=${left - 6} y=${py(y0) + 4} text-anchor="end">${number(y0)}</text>
      <text x=${left} y=${high - 6}>${number(x0)}</text>
      <text x=${wide - 8} y=${high - 6} text-anchor="end">${`${x} ${number(x1)}`}</text>
      <line class="scale" x1=${left} x2=${wide - 8} y1=${high - bottom + 2} y2=${high - bottom + 2} />
      ${series.map((one, place) => html`<path class=${`line-${place % 6}`} d=${path(one)}><title>${one.name}</title>
        </path>`)}
    </svg>
    ${series.length > 1 && html`<ul class="legend">${series.map((one, place) => html`<li><svg viewBox="0 0 16 8"
        aria-hidden="true"><path class=${`line-${place % 6}`} d="M0 4H16" /></svg>${one.name}</li>`)}</ul>`}
  </figure>`;
}
