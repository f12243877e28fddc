// The frame of all pages, and the router: the address behind # chooses the page.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { html } from "./view.mjs";
import { SignIn } from "./sign-in.mjs";
import { Dataset, Datasets } from "./datasets.mjs";
import { Train } from "./train.mjs";
import { Job, Jobs } from "./jobs.mjs";
import { Model, Models } from "./models.mjs";
import { Version } from "./report.mjs";
import { Playground } from "./playground.mjs";
import { Keys } from "./keys.mjs";

const ROUTES = [
  [/^$/, Datasets],
  [/^datasets$/, Datasets],
  [/^datasets\/([^/]+)$/, Dataset],
  [/^train$/, Train],
  [/^jobs$/, Jobs],
  [/^jobs\/([^/]+)$/, Job],
  [/^models$/, Models],
  [/^models\/([^/]+)$/, Model],
  [/^models\/([^/]+)\/(\d+)$/, Version],
  [/^models\/([^/]+)\/(\d+)\/try$/, Playground],
  [/^keys$/, Keys],
];
const MENU = [["datasets", "Datasets"], ["train", "Train"], ["jobs", "Jobs"], ["models", "Models"], ["keys", "Keys"]];

function useAddress() {
  const [address, set] = useState(location.hash);
  useEffect(() => {
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
  useEffect(() => {
    const follow = () => signOut(true);
    window.addEventListener("signed-out", follow);
    return () => window.removeEventListener("signed-out", follow);
  }, []);
  const [pattern, Shown] = ROUTES.find(([one]) => one.test(path)) || [/^/, NoPage];
  const named = (path.match(pattern) || []).slice(1).map(decodeURIComponent);
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <header>
      <a class="home" href="#/datasets">Valiant</a>
      <nav aria-label="Pages">${MENU.map(([to, name]) => html`
        <a href=${`#/${to}`} aria-current=${path.split("/")[0] === to ? "page" : null}>${name}</a>`)}
      </nav>
      <a class="guide" href="/docs/guide">Guide</a>
    </header>
    ${signedOut ? html`<${SignIn} />` : html`<${Shown} key=${path} named=${named} query=${query} />`}`;
}

const skip = (event) => {
  event.preventDefault();
  document.querySelector("h1")?.focus();
};

const NoPage = () => html`<main id="content"><h1 tabindex="-1">No such page</h1><p><a href="#/datasets">Datasets</a></p></main>`;

render(html`<${Console} />`, document.getElementById("console"));
