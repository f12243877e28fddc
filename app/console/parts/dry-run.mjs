// A dry run: what the service thinks of a request, without running it.
import { post } from "./api.mjs";
import { Fault, duration, html, number, size, useLater } from "./view.mjs";

const PAUSE = 350;

/** {value} or {error} of the request that is `body`. */
export const useDryRun = (kind, body) =>
  useLater((signal) => (body ? post(`/v1/jobs/${kind}:validate`, body, { signal }) : undefined), [kind, body], PAUSE);

/** rest: faults that no field shows. children: the button. */
export function DryRun({ of: { value, error }, rest, problem, children }) {
  return html`<aside class="card" aria-live="polite">
    <h2>Dry run</h2>
    ${
      value
        ? html`<${Estimate} of=${value} />`
        : error
          ? html`<p class="wrong">${`${error.errors.length || 1} to correct`}</p>
        ${rest.map((one) => html`<p class="wrong"><code>${one.pointer}</code> ${one.detail}
          </p>`)}${error.errors.length ? null : html`<p>${error.message}</p>`}`
          : html`<p class="soft">Checking…</p>`
    }
    ${children}
    <${Fault} error=${problem} />
  </aside>`;
}

const Estimate = ({ of: one }) => html`
  ${one.seconds !== undefined && html`<p>${`${duration(one.seconds)}, ${size(one.memory_bytes)} of memory`}</p>`}
  ${one.features && html`<p class="soft">${`${one.task} of ${one.rows} rows by ${one.features.length} columns`}</p>`}
  ${one.fits !== undefined && html`<p class="soft">${`${number(one.fits)} fits`}</p>`}
  ${one.seconds === undefined && !one.warnings.length && html`<p>Nothing to correct.</p>`}
  ${one.warnings.map((text) => html`<p class="warning">${text}</p>`)}`;
