// Online sessions: mistakes against their bound, read again every two seconds.
import { useEffect } from "preact/hooks";
import { get, part } from "../parts/api.mjs";
import { Lines } from "../charts/small.mjs";
import { Facts, Loaded, Page, Table, curl, html, number, useLoaded, usePages, when } from "../parts/view.mjs";

const EVERY = 2000;

export function Sessions() {
  const [list, pager] = usePages("/v1/sessions?limit=50", get);
  return html`<${Page} title="Sessions" lead="Learners that predict each row before they learn its label." how=${HOW}>
    <${Loaded} from=${list}>${(page) =>
      html`<${Table} caption="Sessions" rows=${page.items} columns=${[
        {
          name: "Session",
          show: (one) => html`<a href=${`#/sessions/${one.id}`} dir="auto">${one.name || one.id}</a>`,
        },
        { name: "Learner", show: (one) => one.learner },
        { name: "Rounds", number: true, show: (one) => number(one.counts.rounds) },
        { name: "Mistakes", number: true, show: (one) => number(one.counts.mistakes) },
        { name: "Updated", show: (one) => when(one.updated_at) },
      ]} />${pager}`}</${Loaded}>
  </${Page}>`;
}

const counted = (value) => (value === undefined ? undefined : number(value));

export function Session({ named: [id] }) {
  const loaded = useLoaded((signal) => get(`/v1/sessions/${part(id)}`, { signal }), [id]);
  useEffect(() => {
    const timer = setTimeout(loaded.reload, EVERY);
    return () => clearTimeout(timer);
  }, [loaded.value]);
  return html`<${Loaded} from=${loaded}>${(
    one,
  ) => html`<${Page} title=${one.name || "Session"} lead=${one.theorem} how=${HOW}>
    <${Facts} of=${{
      Learner: one.learner,
      Target: one.target,
      Rounds: number(one.counts.rounds),
      Mistakes: counted(one.counts.mistakes),
      Loss: counted(one.counts.loss),
      Regret: counted(one.counts.regret),
      Bound: one.counts.bound === undefined ? undefined : `${number(one.counts.bound)} on ${one.counts.bounded}`,
    }} />
    <${Curve} of=${one.curve} />
  </${Page}>`}</${Loaded}>`;
}

function Curve({ of }) {
  const x = of?.learned || [];
  const series = ["mistakes", "loss", "regret", "bound"]
    .filter((name) => of?.[name]?.length === x.length && of[name].some(Number.isFinite))
    .map((name) => ({
      name,
      x: x.filter((_, place) => Number.isFinite(of[name][place])),
      y: of[name].filter(Number.isFinite),
    }));
  return (
    x.length > 1 &&
    series.length > 0 &&
    html`<${Lines} title="As rounds are learned" x="rounds" range=${null} series=${series} />`
  );
}

const HOW = {
  curl: curl("/v1/sessions"),
  Python:
    "import valiant\n\nfor session in valiant.connect().sessions():\n    print(session.learner, session.counts)",
};
