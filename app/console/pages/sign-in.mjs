// A key becomes a cookie that scripts cannot read.
import { useState } from "preact/hooks";
import { post } from "../parts/api.mjs";
import { Fault, Page, html, useAction } from "../parts/view.mjs";

export function SignIn() {
  const [key, type] = useState("");
  const [send, { busy, error }] = useAction(async (event) => {
    event.preventDefault();
    await post("/console/session", { key });
    location.reload();
  });
  return html`<${Page} title="Sign in"
      lead="This service wants a key. It is kept in a cookie for twelve hours, which no script can read.">
    <form class="narrow" onSubmit=${send}>
      <label>Key<input type="password" autocomplete="current-password" required value=${key}
          onInput=${(event) => type(event.target.value)} /></label>
      <button disabled=${busy}>Sign in</button>
    </form>
    <${Fault} error=${error} />
  </${Page}>`;
}
