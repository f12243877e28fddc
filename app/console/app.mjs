// The frame of all pages, and the router: the address behind # chooses the page.
import { render } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { Loaded, Page, html, useLoaded } from "./view.mjs";

/** A page of a file, which is loaded when the page is first shown. */
const page = (file, name) => ({ load: () => import(`./${file}.mjs`), name });
const ROUTES = [
  [/^(?:datasets)?$/, page("datasets", "Datasets")],
  [/^datasets\/([^/]+)$/, page("datasets", "Dataset")],
  [/^datasets\/([^/]+)\/difference$/, page("difference", "Difference")],
  [/^train$/, page("train", "Train")],
  [/^new\/([a-z]+)$/, page("submit", "Submit")],
  [/^jobs$/, page("jobs", "Jobs")],
  [/^jobs\/([^/]+)$/, page("jobs", "Job")],
  [/^models$/, page("models", "Models")],
  [/^models\/([^/]+)$/, page("models", "Model")],
  [/^models\/([^/]+)\/(\d+)$/, page("report", "Version")],
  [/^models\/([^/]+)\/(\d+)\/try$/, page("playground", "Playground")],
  [/^models\/([^/]+)\/(\d+)\/tree$/, page("tree", "Tree")],
  [/^compare$/, page("compare", "Compare")],
  [/^reviews$/, page("reviews", "Reviews")],
  [/^sessions$/, page("sessions", "Sessions")],
  [/^sessions\/([^/]+)$/, page("sessions", "Session")],
  [/^theory$/, page("theory", "Theory")],
  [/^keys$/, page("keys", "Keys")],
];
const NOWHERE = [/^/, { load: async () => ({ NoPage }), name: "NoPage" }];
const MENU = [["datasets", "Datasets"], ["train", "Train"], ["jobs", "Jobs"], ["models", "Models"], ["compare", "Compare"], ["reviews", "Reviews"], ["sessions", "Sessions"], ["theory", "Theory"], ["keys", "Keys"]];

function useAddress() {
  const [address, set] = useState(location.hash);
  useLayoutEffect(() => {  // before the page is seen: a link followed at once counts
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
  const [, dataset] = path.match(/^datasets\/([^/]+)/) || [];  // which a training begins with
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <header>
      <a class="home" href="#/datasets">Valiant</a>
      <nav aria-label="Pages">${MENU.map(([to, name]) => html`
        <a href=${`#/${to}${to === "train" && dataset ? `?dataset=${dataset}` : ""}`} aria-current=${path.split("/")[0] === to ? "page" : null}>${name}</a>`)}
      </nav>
      <a class="guide" href="/docs/guide">Guide</a>
    </header>
    ${signedOut ? html`<${Shown} ...${page("sign-in", "SignIn")} />` : html`<${Shown} key=${path} ...${chosen} named=${named} query=${query} />`}`;
}

function Shown({ load, name, ...rest }) {
  const loaded = useLoaded(load, []);
  return html`<${Loaded} from=${loaded}>${(file) => html`<${file[name]} ...${rest} />`}</${Loaded}>`;
}

const skip = (event) => {
  event.preventDefault();
  document.querySelector("h1")?.focus();
};

const NoPage = () => html`<${Page} title="No such page" lead="The address leads nowhere."><a class="button" href="#/datasets">Datasets</a></${Page}>`;

render(html`<${Console} />`, document.getElementById("console"));
