// A decision tree, or one tree of an ensemble, unfolded node by node.
import { useState } from "preact/hooks";
import { get, part, post } from "../parts/api.mjs";
import { Loaded, Page, Table, curl, html, number, useLoaded } from "../parts/view.mjs";

const FIRST = 2,
  MORE = 3;

export function Tree({ named: [model, version] }) {
  const [member, choose] = useState(0),
    [depth, deepen] = useState(FIRST);
  const address = `/v1/models/${part(model)}/tree?version=${version}`;
  const loaded = useLoaded(
    async (signal) => {
      const [one, tree] = await Promise.all([
        get(`/v1/models/${part(model)}/versions/${version}`, { signal }),
        post(address, { member, max_depth: depth, rules: true }, { signal }),
      ]);
      return { ...tree, target: one.target || one.task };
    },
    [member, depth],
  );
  return html`<${Page} title=${`Tree of ${model}, version ${version}`} how=${how(model, version, member, depth)}
      lead="The condition of a node leads to its first branch; rows that do not meet it take the second."
      actions=${html`<a class="button quiet" href=${`#/models/${part(model)}/${version}`}>Report</a>`}>
    <${Loaded} from=${loaded}>${(tree) => html`
      ${
        tree.members > 1 &&
        html`<label class="inline">${`Tree, 1 to ${number(tree.members)}`}
        <input type="number" min="1" max=${tree.members} value=${member + 1}
            onChange=${(event) => choose(Math.min(tree.members, Math.max(1, Number(event.target.value) || 1)) - 1)} />
              </label>`
      }
      <ul class="tree">${tree.nodes.length > 0 && html`<${Node} of=${tree.nodes[0]} tree=${tree} />`}</ul>
      ${tree.nodes.some((one) => one.truncated) && html`<button class="quiet"
          onClick=${() => deepen(depth + MORE)}>Show ${MORE} more levels</button>`}
      <details><summary>As rules</summary><${Table} caption="Rules" rows=${tree.rules.slice(0, 100)} columns=${[
        {
          name: "Rule",
          show: (one) => html`<span dir="auto">${one.conditions.map(condition).join(" and ") || "every row"}</span>`,
        },
        { name: tree.target, show: (one) => predicted(one.value, tree) },
        { name: "Rows", number: true, show: (one) => (one.rows === undefined ? "" : number(one.rows)) },
      ]} /></details>`}</${Loaded}>
  </${Page}>`;
}

const sum = (terms) => terms.map(({ coef, column }) => `${number(coef)} × ${column}`).join(" + ");

const condition = (one) => {
  const left = one.column ?? sum(one.terms || []);
  const right = {
    "<=": `≤ ${number(one.threshold)}`,
    ">": `> ${number(one.threshold)}`,
    in: `is ${one.categories?.join(" or ")}`,
    "not in": `is not ${one.categories?.join(" or ")}`,
    known: "is known",
    missing: "is missing",
  }[one.op];
  return `${left} ${right}${one.or_missing ? " or is missing" : ""}`;
};

const shares = (value, tree) =>
  tree.classes && value?.length === tree.classes.length && Math.abs(value.reduce((a, b) => a + b, 0) - 1) < 1e-6;

function predicted(value, tree) {
  if (!value?.length) return "";
  if (!shares(value, tree)) return value.map(number).join(", ");
  const best = value.indexOf(Math.max(...value));
  return `${tree.classes[best]}, ${number(Number((100 * value[best]).toFixed(1)))} %`;
}

function Node({ of: node, tree, branch }) {
  const at = (place) => tree.nodes.find((one) => one.node === place);
  const branches = [
    ["yes", node.left],
    ["no", node.right],
    ["missing", node.missing],
  ].filter(([, place]) => place !== undefined);
  const text = html`${branch && html`<span class="alias">${branch}</span> `}<span dir="auto">
    ${node.op === undefined ? predicted(node.value, tree) || "leaf" : `${condition(node)}?`}</span>
    <span class="soft"> ${[
      node.op !== undefined && predicted(node.value, tree),
      node.rows !== undefined && `${number(node.rows)} rows`,
      node.truncated && "more below",
    ]
      .filter(Boolean)
      .join("; ")}</span>
    ${shares(node.value, tree) && html`<${Shares} of=${node.value} />`}`;
  if (!branches.length) return html`<li><span class="leaf">${text}</span></li>`;
  return html`<li><details open><summary>${text}</summary>
    <ul>${branches.map(([name, place]) => html`<${Node} key=${place} of=${at(place)} tree=${tree} branch=${name} />`)}
      </ul></details></li>`;
}

/** Shares of the classes side by side; the text beside it names the largest. */
function Shares({ of }) {
  let left = 0;
  return html`<svg class="shares" viewBox="0 0 100 8" aria-hidden="true" preserveAspectRatio="none">${of.map(
    (share, place) => {
      const x = left;
      left += 100 * share;
      return html`<rect class=${`area-${place % 6}`} x=${x} y="0" width=${100 * share} height="8" />`;
    },
  )}</svg>`;
}

const how = (model, version, member, depth) => ({
  curl: curl(`/v1/models/${model}/tree?version=${version}`, { member, max_depth: depth }),
  Python: [
    "import valiant\n",
    `version = valiant.connect().model(${JSON.stringify(model)}).version(${version})`,
    `version.query("tree", member=${member}, max_depth=${depth})`,
  ].join("\n"),
  Terminal: `valiant report ${model} --version ${version} -o report.html`,
});
