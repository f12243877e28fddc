// The review queue: rows that a classifier rejected, labelled with the keys 1 to 9.
import { useLayoutEffect, useState } from "preact/hooks";
import { get, post } from "../parts/api.mjs";
import { Facts, Fault, Loaded, Page, curl, html, number, useAction, useLoaded } from "../parts/view.mjs";

export function Reviews() {
  const loaded = useLoaded((signal) => get("/v1/reviews?state=waiting&limit=50", { signal }), []);
  return html`<${Page} title="Reviews"
      lead="Rows that a classifier was not sure of, sent with review=true. Press 1 to 9 to give the row that class, S to
        leave it for later." how=${HOW}>
    <${Loaded} from=${loaded}>${(page) =>
      page.items.length
        ? html`<${Queue} rows=${page.items} more=${loaded.reload} />`
        : html`<p class="soft">No row waits for a label.</p>`}</${Loaded}>
  </${Page}>`;
}

function Queue({ rows, more }) {
  const [place, move] = useState(0),
    row = rows[place];
  const next = () => (place + 1 < rows.length ? move(place + 1) : (move(0), more()));
  const [label, { error, busy }] = useAction(async (value) => {
    await post(`/v1/reviews/${row.id}/label`, { label: value });
    next();
  });
  useLayoutEffect(() => {
    // before the row is seen: a key pressed at once counts
    const press = (event) => {
      if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey || busy)
        return;
      if (event.key.toLowerCase() === "s") next();
      const chosen = row.classes[Number(event.key) - 1];
      if (/^[1-9]$/.test(event.key) && chosen !== undefined) label(chosen);
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [row, busy]);
  return html`<section class="card" aria-live="polite">
    <p class="soft">${`${place + 1} of ${rows.length}, by ${row.model} ${row.version}`}</p>
    <${Facts} of=${Object.fromEntries(
      Object.entries(row.row)
        .slice(0, 60)
        .map(([name, value]) => [name, value === null ? "missing" : number(value)]),
    )} />
    <div class="actions">${row.classes.map(
      (name, place_) => html`<button class=${place_ ? "quiet" : ""} disabled=${busy} onClick=${() => label(name)}>
      ${place_ < 9 ? `${place_ + 1}  ` : ""}<span dir="auto">${String(name)}</span> <span>
        ${`(${number(Number(row.probabilities[place_].toFixed(3)))})`}</span></button>`,
    )}
      <button class="quiet" onClick=${next}>S  later</button></div>
    <${Fault} error=${error} />
  </section>`;
}

const HOW = {
  curl: curl("/v1/reviews?state=waiting"),
  Python: 'import valiant\n\nfor row in valiant.connect().reviews(state="waiting"):\n    print(row.row, row.classes)',
};
