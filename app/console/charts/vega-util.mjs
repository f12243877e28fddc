// vega-interpreter imports three names of vega-util, which the script of vega holds.
const { ascending, isString, DisallowedObjectProperties } = globalThis.vega;
if (!DisallowedObjectProperties) throw new Error("vega lacks the list of properties that expressions may not read");
export { ascending, isString, DisallowedObjectProperties };
