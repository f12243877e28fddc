// A file that a person chooses, or drops on a part of the page.
import { useState } from "preact/hooks";
import { html } from "./view.mjs";

/** A button that opens the choice of a file. */
export const FileButton = ({ take, busy, children, quiet }) => html`
  <label class=${quiet ? "button quiet" : "button"}>${busy ? "Uploading…" : children}
    <input class="hidden" type="file" disabled=${busy} onChange=${(event) => {
      const [file] = event.target.files;
      if (file) take(file);
    }} /></label>`;

/** A part of the page that takes the file that is dropped on it. */
export function DropArea({ take, children }) {
  const [over, see] = useState(false);
  const drop = (event) => {
    event.preventDefault();
    see(false);
    const [file] = event.dataTransfer.files;
    if (file) take(file);
  };
  const hover = (event) => {
    event.preventDefault();
    see(true);
  };
  return html`<div class=${over ? "drop over" : "drop"} onDragOver=${hover} onDragLeave=${() => see(false)}
      onDrop=${drop}>${children}</div>`;
}
