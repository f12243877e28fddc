// The frame of all pages, and the router: the address behind # chooses the page.
import { render } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { Loaded, Page, html, useLoaded } from "./parts/view.mjs";

/** A page of a file, which is loaded when the page is first shown. */
const page = (file, name) => ({ load: () => import(`./pages/${file}.mjs`), name });
const ROUTES = [
  [/^(?:home)?$/, page("home", "Home")],
  [/^datasets$/, page("datasets", "Datasets")],
  [/^datasets\/([^/]+)$/, page("datasets", "Dataset")],
  [/^datasets\/([^/]+)\/difference$/, page("difference", "Difference")],
  [/^train$/, page("train", "Train")],
  [/^new\/([a-z]+)$/, page("submit", "Submit")],
  [/^jobs$/, page("jobs", "Jobs")],
  [/^jobs\/([^/]+)$/, page("jobs", "Job")],
  [/^models$/, page("models", "Models")],
  [/^models\/([^/]+)$/, page("models", "Model")],
  [/^models\/([^/]+)\/(\d+)$/, page("version", "Version")],
  [/^models\/([^/]+)\/(\d+)\/try$/, page("playground", "Playground")],
  [/^models\/([^/]+)\/(\d+)\/tree$/, page("tree", "Tree")],
  [/^runs$/, page("runs", "Runs")],
  [/^compare$/, page("compare", "Compare")],
  [/^reviews$/, page("reviews", "Reviews")],
  [/^sessions$/, page("sessions", "Sessions")],
  [/^sessions\/([^/]+)$/, page("sessions", "Session")],
  [/^theory$/, page("theory", "Theory")],
  [/^keys$/, page("keys", "Keys")],
];
const NOWHERE = [/^/, { load: async () => ({ NoPage }), name: "NoPage" }];
/** Pages by group; those of the last are folded. */
const MENU = {
  Data: { datasets: "Datasets" },
  Models: { train: "Train", runs: "Runs", models: "Models", compare: "Compare" },
  Operate: { jobs: "Jobs", keys: "Keys" },
};
const MORE = { reviews: "Reviews", sessions: "Sessions", theory: "Theory" };

function useAddress() {
  const [address, set] = useState(location.hash);
  useLayoutEffect(() => {
    // before the page is seen: a link followed at once counts
    const follow = () => set(location.hash);
    window.addEventListener("hashchange", follow);
    return () => window.removeEventListener("hashchange", follow);
  }, []);
  const [path, query] = address.replace(/^#\/?/, "").split("?");
  return [path, new URLSearchParams(query)];
}

function Console() {
  const [path, query] = useAddress();
  const [signedOut, signOut] = useState(false);
  useLayoutEffect(() => {
    const follow = () => signOut(true);
    window.addEventListener("signed-out", follow);
    return () => window.removeEventListener("signed-out", follow);
  }, []);
  const [pattern, chosen] = ROUTES.find(([one]) => one.test(path)) || NOWHERE;
  const named = (path.match(pattern) || []).slice(1).map(decodeURIComponent);
  const [, dataset] = path.match(/^datasets\/([^/]+)/) || []; // which a training begins with
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <header>
      <a class="home" href="#/">Valiant</a>
      <${Menu} here=${path.split("/")[0]} dataset=${dataset} />
      <a class="guide" href="/docs/guide">Guide</a>
    </header>
    ${signedOut
      ? html`<${Shown} ...${page("sign-in", "SignIn")} />`
      : html`<${Shown} key=${path} ...${chosen} named=${named} query=${query} />`}`;
}

function Menu({ here, dataset }) {
  const [open, unfold] = useState(false);
  const link = ([to, name]) => html`<a href=${`#/${to}${to === "train" && dataset ? `?dataset=${dataset}` : ""}`}
    aria-current=${here === to ? "page" : null} onClick=${() => unfold(false)}>${name}</a>`;
  return html`<nav aria-label="Pages">
    ${Object.entries(MENU).map(
      ([group, pages]) => html`<span class="group"><span class="soft" aria-hidden="true">${group}</span>
        ${Object.entries(pages).map(link)}</span>`,
    )}
    <details class="menu" open=${open || here in MORE} onToggle=${(event) => unfold(event.target.open)}>
      <summary>More</summary><span class="group">${Object.entries(MORE).map(link)}</span></details>
  </nav>`;
}

function Shown({ load, name, ...rest }) {
  const loaded = useLoaded(load, []);
  return html`<${Loaded} from=${loaded}>${(file) => html`<${file[name]} ...${rest} />`}</${Loaded}>`;
}

const skip = (event) => {
  event.preventDefault();
  document.querySelector("h1")?.focus();
};

const NoPage = () =>
  html`<${Page} title="No such page" lead="The address leads nowhere.">
    <a class="button" href="#/">Home</a></${Page}>`;

render(html`<${Console} />`, document.getElementById("console"));
