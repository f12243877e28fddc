// Requests to the API of this service, and its problems as errors.

export class Problem extends Error {
  constructor(problem) {
    super(problem.detail || problem.title);
    Object.assign(this, problem);
    this.errors = problem.errors || [];
  }
}

export const send = async (method, path, { body, content, headers = {}, signal } = {}) => {
  const request = { method, headers: { ...headers }, signal, credentials: "same-origin" };
  if (body !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify(body);
  } else if (content !== undefined) request.body = content;
  if (method === "POST") request.headers["Idempotency-Key"] = crypto.randomUUID();
  let response;
  try {
    response = await fetch(path, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({
      title: "The service does not respond",
      detail: "The service does not respond.",
      code: "offline",
    });
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({ title: response.statusText, status: response.status }));
  if (problem.status === 401) window.dispatchEvent(new Event("signed-out"));
  throw new Problem(problem);
};

const json = async (...request) => {
  const response = await send(...request);
  return response.status === 204 ? null : response.json();
};

export const get = (path, options) => json("GET", path, options);
export const post = (path, body, options) => json("POST", path, { body, ...options });
export const put = (path, body, options) => json("PUT", path, { body, ...options });
export const remove = (path) => json("DELETE", path);

export const upload = (file, name, format) =>
  json("POST", `/v1/datasets?${new URLSearchParams(format ? { name, file_format: format } : { name })}`, {
    content: file,
    headers: { "Content-Type": "application/octet-stream" },
  });

/** The file of a model, for a job that imports it. */
export const uploadFile = (file) =>
  json("POST", "/v1/files", { content: file, headers: { "Content-Type": "application/octet-stream" } });

/** A part of an address from what people have named. */
export const part = encodeURIComponent;

export const MAX_ITEMS = 2000;

/** The items of all pages of a list, at most the newest 2,000. `see(items)`: after each page but the last. */
export async function readAll(path, signal, see) {
  const items = [];
  const join = path.includes("?") ? "&" : "?";
  for (let cursor = null; ; ) {
    const page = await get(`${path}${join}limit=200${cursor ? `&cursor=${part(cursor)}` : ""}`, { signal });
    items.push(...page.items);
    cursor = page.next_cursor;
    if (!cursor || items.length >= MAX_ITEMS) return items;
    see?.([...items]);
  }
}

/** Datasets without their data sheets, the newest first. */
export const readDatasets = (signal) => readAll("/v1/datasets?sheets=false", signal);

/** The algorithms that a training can choose. */
export const readTrainable = async (signal) =>
  (await readAll("/v1/algorithms", signal)).filter((one) => one.trainable);

/** Moves an alias, unless somebody else has moved it since it was read. */
export const promote = (model, version, alias = "champion") => {
  const before = model.aliases.find((one) => one.alias === alias);
  const headers = before ? { "If-Match": before.etag } : {};
  return put(`/v1/models/${part(model.name)}/aliases/${part(alias)}`, { version }, { headers });
};

const ENDED = new Set(["succeeded", "failed", "cancelled", "timed_out"]);
export const hasEnded = (job) => ENDED.has(job.state);

/** The job once it has ended. */
export async function waitFor(job) {
  for (let wait = 100; !hasEnded(job); wait = Math.min(2 * wait, 2000)) {
    await new Promise((done) => setTimeout(done, wait));
    job = await get(`/v1/jobs/${part(job.id)}`);
  }
  return job;
}

/** The result of a job of this kind. Throws its problem. */
export async function runJob(kind, body) {
  const job = await waitFor(await post(`/v1/jobs/${part(kind)}`, body));
  if (job.error) throw Object.assign(new Error(job.error.detail), job.error);
  return job.result;
}

/** Formats that the end of a name chooses; the others are recognised by their content. */
const FORMATS = { ".arff": "arff", ".svm": "svmlight", ".libsvm": "svmlight", ".svmlight": "svmlight" };

/** Uploads a file that a person has chosen, under its name without what names the format. */
export const uploadChosen = (file) => {
  const unpacked = file.name.replace(/\.(gz|bz2|xz|zst|lz4|zip)$/i, "");
  const [, name, suffix] = /^(.*?)(\.[^.]*)?$/s.exec(unpacked);
  return upload(file, name || unpacked, FORMATS[suffix?.toLowerCase()]);
};
