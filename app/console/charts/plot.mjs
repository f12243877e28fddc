// Draws Vega-Lite under the console's policy: expressions are interpreted, not compiled.
const script = (name) =>
  new Promise((done, fail) => {
    const element = document.createElement("script");
    Object.assign(element, {
      src: `/console/vendor/${name}`,
      onload: done,
      onerror: () => fail(new Error(`${name} could not be loaded`)),
    });
    document.head.append(element);
  });

await script("vega.min.js");
await script("vega-lite.min.js");
const { expressionInterpreter } = await import("vega-interpreter");
const { vega, vegaLite } = globalThis;
/** Nothing is loaded, wherever a specification points. */
const loader = {
  load: () => Promise.reject(new Error("Plots load nothing.")),
  sanitize: () => Promise.reject(new Error("Plots link nowhere.")),
};

export async function draw(element, specification) {
  const wide = Math.max(220, Math.min(560, element.clientWidth - 90));
  const fitted =
    typeof specification.width === "number"
      ? { ...specification, width: Math.min(specification.width, wide) }
      : specification;
  const { spec } = vegaLite.compile(fitted);
  const view = new vega.View(vega.parse(spec, null, { ast: true }), {
    renderer: "svg",
    expr: expressionInterpreter,
    loader,
    hover: true,
    container: element,
  });
  await view.runAsync();
  element.querySelector("svg")?.setAttribute("aria-hidden", "true");
  return view;
}
