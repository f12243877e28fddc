// Keys of the project, its quotas, and the audit log.
import { useState } from "preact/hooks";
import { get, post, remove } from "../parts/api.mjs";
import {
  Copied,
  Facts,
  Fault,
  Loaded,
  Page,
  State,
  Table,
  curl,
  html,
  number,
  size,
  useAction,
  useLoaded,
  usePages,
  when,
} from "../parts/view.mjs";

const QUOTAS = [
  ["storage_bytes", "Storage", size],
  ["model_versions", "Model versions", number],
  ["queued_jobs", "Jobs that wait", number],
  ["running_jobs", "Jobs that run", number],
  ["run_seconds_per_day", "Seconds of jobs today", (seconds) => number(Math.round(seconds))],
];
const ROLES = ["caller", "viewer", "editor", "admin", "operator"];

export function Keys() {
  const me = useLoaded((signal) => get("/v1/me", { signal }), []);
  const usage = useLoaded((signal) => get("/v1/usage", { signal }), []);
  const [list, pager] = usePages("/v1/keys?limit=50", get);
  const [audit, further] = usePages("/v1/audit?limit=50", get);
  const [fresh, show] = useState();
  const [act, { busy, error }] = useAction(async (change) => {
    show(await change());
    list.reload();
    audit.reload();
  });
  const create = (event) => {
    event.preventDefault();
    const fields = new FormData(event.target),
      models = fields
        .get("models")
        .split(/[\s,]+/)
        .filter(Boolean);
    act(() =>
      post("/v1/keys", {
        name: fields.get("name"),
        role: fields.get("role"),
        expires_in_days: Number(fields.get("days")),
        ...(models.length && { models }),
      }),
    );
  };
  return html`<${Page} title="Keys"
      lead="Programs and people send a key with each request. It is shown once, when it is created." how=${HOW}>
    <${Loaded} from=${me}>${(
      one,
    ) => html`<${Facts}
        of=${{
          Project: one.project,
          "Your key": one.name ?? "none: this service needs no keys",
          "Your scopes": one.scopes.join(", "),
        }} />
      ${one.name && html`<p><button class="quiet" onClick=${leave}>Sign out</button></p>`}`}</${Loaded}>
    <form class="row" onSubmit=${create}>
      <label>Name<input name="name" required maxlength="100" /></label>
      <label>Role<select name="role">${ROLES.map((one) => html`<option>${one}</option>`)}</select></label>
      <label>Models<input name="models" placeholder="all, or fraud-*" /></label>
      <label>Days<input name="days" type="number" min="1" max="365" value="90" /></label>
      <button disabled=${busy}>Create a key</button>
    </form>
    <${Fault} error=${error} />
    ${fresh?.secret && html`<section class="card" role="status"><h2>Keep this key</h2><p>It is not shown again.</p>
      <${Copied} text=${fresh.secret} /></section>`}
    <${Loaded} from=${list}>${(page) =>
      html`<${Table} caption="Keys" rows=${page.items} columns=${[
        { name: "Name", show: (one) => html`<span dir="auto">${one.name}</span>` },
        { name: "Begins with", show: (one) => html`<code>${one.prefix}</code>` },
        { name: "Scopes", show: (one) => one.scopes.join(", ") },
        { name: "Models", show: (one) => one.models?.join(", ") ?? "all" },
        { name: "Last used", show: (one) => (one.last_used_at ? when(one.last_used_at) : "never") },
        { name: "Until", show: (one) => (one.revoked_at ? html`<${State} of="revoked" />` : when(one.expires_at)) },
        {
          name: "",
          show: (one) =>
            !one.revoked_at &&
            html`<span class="actions">
        <button class="quiet" disabled=${busy} onClick=${() => act(() => post(`/v1/keys/${one.id}:rotate`, {}))}
            aria-label=${`Rotate ${one.name}`}>Rotate</button>
        <button class="quiet" disabled=${busy}
            onClick=${() => confirm(`Revoke the key ${one.name}?`) && act(() => remove(`/v1/keys/${one.id}`))}
                aria-label=${`Revoke ${one.name}`}>Revoke</button></span>`,
        },
      ]} />${pager}`}</${Loaded}>
    <h2>Quotas</h2>
    <${Loaded} from=${usage}>${(one) =>
      html`<${Table} caption="Quotas" rows=${QUOTAS} columns=${[
        { name: "Of the project", show: ([, name]) => name },
        { name: "Used", number: true, show: ([field, , shown]) => shown(one[field]) },
        {
          name: "Limit",
          number: true,
          show: ([field, , shown]) => (one.quotas[field] === undefined ? "none" : shown(one.quotas[field])),
        },
      ]} />`}</${Loaded}>
    <h2>Audit log</h2>
    <${Loaded} from=${audit}>${(page) =>
      html`<${Table} caption="Audit log" rows=${page.items} empty="No change with a key yet." columns=${[
        { name: "Time", show: (one) => when(one.at) },
        { name: "Operation", show: (one) => one.action },
        { name: "Target", show: (one) => html`<code>${one.target}</code>` },
        { name: "Status", number: true, show: (one) => one.outcome },
        { name: "Key", show: (one) => html`<code>${one.actor}</code>` },
      ]} />${further}`}</${Loaded}>
  </${Page}>`;
}

async function leave() {
  await remove("/console/session");
  location.reload();
}

const HOW = {
  curl: curl("/v1/keys", { name: "checkout", role: "caller", models: ["fraud-*"] }),
  Python:
    'import valiant\n\nkey = valiant.connect().create_key("checkout", "caller", models=["fraud-*"])\nprint(key.secret)',
  Terminal: "valiant keys create --role caller --models 'fraud-*' --name checkout",
};
