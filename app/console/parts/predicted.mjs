// Rows of a dataset that a model predicted: predictions and reasons first.
import { get, part } from "./api.mjs";
import { Loaded, Table, html, number, useLoaded } from "./view.mjs";

const SHOWN_ROWS = 20;
const FIRST = ["prediction", "reasons", "lower", "upper"];

/** The order of columns: predictions, reasons, probabilities, then the others; contributions are left to the file. */
const ordered = (names) => [
  ...FIRST.filter((name) => names.includes(name)),
  ...names.filter((name) => !FIRST.includes(name) && !name.startsWith("contribution")),
];

export function PredictedRows({ dataset }) {
  const loaded = useLoaded(
    async (signal) => {
      const [one, page] = await Promise.all([
        get(`/v1/datasets/${part(dataset)}?sheets=false`, { signal }),
        get(`/v1/datasets/${part(dataset)}/rows?limit=${SHOWN_ROWS}`, { signal }),
      ]);
      return { one, page };
    },
    [dataset],
  );
  return html`<section><h2>Predictions</h2><${Loaded} from=${loaded}>${({ one, page }) => html`
    <p class="actions">
      <a class="button" href=${`/v1/datasets/${part(dataset)}/file`} download=${`${one.name}.csv`}>Download all</a>
      <a class="button quiet" href=${`#/datasets/${part(dataset)}`}>Open as a dataset</a></p>
    <${Table} caption="Predictions" rows=${page.data.map((cells, place) => [page.offset + place, ...cells])} columns=${[
      { name: "Row", show: (row) => row[0] },
      ...ordered(page.columns).map((name) => {
        const place = page.columns.indexOf(name) + 1;
        return {
          name: name.replaceAll("_", " "),
          number: typeof page.data[0]?.[place - 1] === "number",
          show: (row) => cell(row[place], name === "reasons"),
        };
      }),
    ]} />
    ${page.total > SHOWN_ROWS && html`<p class="soft">
      ${`The first ${SHOWN_ROWS} of ${number(page.total)} rows.`}</p>`}`}
  </${Loaded}></section>`;
}

const cell = (value, isReason) => {
  if (value === null) return "";
  const text = typeof value === "number" ? number(value) : String(value);
  return html`<span dir="auto" class=${isReason ? "wrap" : ""}>${text}</span>`;
};
