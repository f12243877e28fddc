// Metrics of a version: which comes first, how they are named, and the tile of the first.
import { Interval } from "../charts/small.mjs";
import { Table, html, number } from "./view.mjs";

/** The metric that stands for a version, by its task; the first of its metrics where it lacks this one. */
const FIRST = {
  classification: "accuracy",
  regression: "rmse",
  clustering: "silhouette",
  projection: "explained_variance",
  density: "log_density",
};

/** @param {string} task @param {{name: string, label?: string}[]} metrics of one version */
export const firstMetric = (task, metrics) =>
  metrics.find((metric) => metric.name === FIRST[task] && metric.label === undefined) || metrics[0];

export const metricName = (metric) => {
  if (metric.label !== undefined) return `${metric.name} of ${metric.label}`;
  return metric.name + (metric.average ? ` (${metric.average})` : "");
};

/** A metric with its interval drawn, on a scale from 0 to 1 where it fits, else on one of its own. brief: without
 * words. */
export function Scaled({ metric, ends, brief }) {
  if (metric?.value === null || metric?.value === undefined) return "";
  const all = [metric.value, metric.lower ?? metric.value, metric.upper ?? metric.value];
  const isShare = Math.min(...all) >= 0 && Math.max(...all) <= 1;
  const [lower, upper] = ends || (isShare ? [0, 1] : [Math.min(0, ...all), Math.max(0, ...all)]);
  const words = brief || metric.lower === undefined ? "" : `${number(metric.lower)} to ${number(metric.upper)}`;
  return html`<span class="scaled"><${Interval} metric=${metric} lower=${lower} upper=${upper} />
    <span class="soft">${words}</span></span>`;
}

/** The first metric as one tile: value, interval, the constant prediction beside it, and the number of rows. */
export function Tile({ metric, baseline, rows }) {
  const percent = metric.confidence === undefined ? 95 : Math.round(100 * metric.confidence);
  const shown = metric.display.split(/ ± | \(/)[0];
  return html`<section class="card tile" aria-label=${`First metric, ${metric.name}`}>
    <p class="soft">${metricName(metric)}, on ${number(metric.n)} ${rows}${
      metric.lower !== undefined && `, with its ${percent} % interval`}</p>
    <p class="value">${shown}</p>
    ${metric.lower !== undefined && html`<p><${Scaled} metric=${metric} /></p>`}
    ${baseline && html`<${Beside} baseline=${baseline} />`}
  </section>`;
}

/** The constant prediction, and whether the model surpasses it. */
function Beside({ baseline: { prediction, constant, difference, surpassed } }) {
  const name = prediction === undefined ? "the shares of the classes" : number(prediction);
  const relation = { true: "better than", false: "worse than" }[surpassed] ?? "not distinguishable from";
  const { lower, upper, display } = difference;
  const interval = lower === undefined || display.includes(" to ") ? "" : ` (${number(lower)} to ${number(upper)})`;
  return html`<p class=${surpassed ? "" : "warning"}>
    <span dir="auto">${`Predicting ${name} for every row: ${constant.display}.`}</span>${" "}
    ${`Difference ${display}${interval}: ${relation} the constant.`}</p>`;
}

/** A table of metrics; `baselines` have a row each, behind the metric that they are of. */
export function Metrics({ caption, metrics, baselines = [] }) {
  const rows = metrics.flatMap((metric) => [
    { name: metricName(metric), metric },
    ...baselines
      .filter((one) => one.metric === metric.name && metric.label === undefined)
      .map((one) => ({ name: `${metric.name} of a constant prediction`, metric: one.constant, soft: true })),
  ]);
  return html`<${Table} caption=${caption} rows=${rows} columns=${[
    { name: "Metric", show: ({ name, soft }) => html`<span dir="auto" class=${soft ? "soft" : ""}>${name}</span>` },
    { name: "Value", show: ({ metric }) => metric.display },
    { name: "Interval", show: ({ metric }) => html`<${Scaled} metric=${metric} />` },
    { name: "Rows", number: true, show: ({ metric }) => number(metric.n) },
  ]} />`;
}
