// The server: every operation of the table, references, files, lanes. Nothing else in the pages fetches.
import { signal } from "./dom.js";

const KEY = "threefold.token";

/** Whether the server wants a token that it was not given. */
export const refused = signal(false);

/** What the server refused, in its words; `status` 0 where it did not answer. */
export class Problem extends Error {
  constructor(status, title, detail) {
    super(detail || title);
    this.status = status;
    this.title = title;
  }
}

export function token() {
  try {
    return sessionStorage.getItem(KEY) || "";
  } catch {
    return "";
  }
}

export function setToken(value) {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
  refused.value = false;
}

function headers(more) {
  const held = token();
  return { Accept: "application/json", "X-Threefold-Request": "1", ...(held ? { Authorization: `Bearer ${held}` } : {}), ...more };
}

const SILENT = "The server does not answer. Nothing was lost here; try again in a moment.";

function problem(status, text) {
  if (status === 401) refused.value = true;
  try {
    const told = JSON.parse(text);
    return new Problem(status, told.title || "Refused", told.detail || told.title);
  } catch {
    return new Problem(status, "Refused", `The server answered with ${status}.`);
  }
}

async function answered(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "omit", ...options, headers: headers(options.headers) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "No answer", SILENT);
  }
  if (!response.ok) throw problem(response.status, await response.text());
  return response;
}

async function json(path, options) {
  return (await answered(path, options)).json();
}

/**
 * Run an operation: `call("mem", "search", { query })`; the namespace `all` is what concerns every realm.
 * Arguments that are undefined, null or empty text are left out unless they are listed in `keep`.
 */
export function call(namespace, operation, given = {}, { signal: stop, keep = [] } = {}) {
  const unset = (name, value) => value === undefined || ((value === null || value === "") && !keep.includes(name));
  const body = Object.fromEntries(Object.entries(given).filter(([name, value]) => !unset(name, value)));
  const path = namespace === "all" ? `/v1/${operation}` : `/v1/${namespace}/${operation}`;
  return json(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal: stop,
  });
}

export const services = () => json("/v1/services", {});

/** What a reference names, with all that is known of it. */
export const object = (ref, stop) => json(`/v1/refs/${encodeURIComponent(ref)}?size=1`, { signal: stop });

/** The exact bytes that a reference names. */
export async function bytes(ref, stop) {
  return (await answered(`/v1/refs/${encodeURIComponent(ref)}?raw=1`, { headers: { Accept: "*/*" }, signal: stop })).blob();
}

/** The whole of what is kept, as one archive. */
export async function archive() {
  return (await answered("/v1/export", { headers: { Accept: "*/*" } })).blob();
}

/**
 * Send a file with fields beside it; `onProgress` is told the share that is sent. `fetch` tells no progress.
 * @param {string} path
 * @param {File} file
 * @param {Record<string, string>} fields
 * @param {(share: number) => void} onProgress
 */
export function upload(path, file, fields, onProgress) {
  return new Promise((done, fail) => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    form.append("file", file, file.name);
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    request.onerror = () => fail(new Problem(0, "No answer", SILENT));
    request.onload = () => {
      if (request.status >= 400) return fail(problem(request.status, request.responseText));
      return done(JSON.parse(request.responseText));
    };
    request.send(form);
  });
}

/** The agents of this server; a server that tells of none lets nobody choose. */
export async function agents(stop) {
  try {
    return (await json("/v1/agents", { signal: stop })).agents;
  } catch (error) {
    if (error instanceof Problem) return [];
    throw error;
  }
}

const lane = (conversation) => `/v1/lanes/${encodeURIComponent(conversation)}`;
const of = (agent) => (agent ? `?agent=${encodeURIComponent(agent)}` : "");

/** Whether a problem says that this server has no lanes. */
export const noLanes = (error) => error instanceof Problem && [404, 405, 501].includes(error.status);

/** A lane is a conversation, and an agent where one is chosen. */
export const laneState = (conversation, agent, stop) => json(lane(conversation) + of(agent), { signal: stop });

/** Take back something that waits. */
export const withdraw = (conversation, agent, submission) =>
  json(`${lane(conversation)}/submissions/${encodeURIComponent(submission)}${of(agent)}`, { method: "DELETE" });

export const cancel = (conversation, agent) =>
  json(`${lane(conversation)}/cancel`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(agent ? { agent } : {}) });

/** Say something in a conversation, with files; acknowledged when it is kept. */
export function submit(conversation, agent, { text, kind, key, files = [] }) {
  const said = { text, kind, key, ...(agent ? { agent } : {}) };
  if (!files.length) {
    return json(lane(conversation), {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": key },
      body: JSON.stringify(said),
    });
  }
  const form = new FormData();
  for (const [name, value] of Object.entries(said)) form.append(name, value);
  for (const file of files) form.append("files", file, file.name);
  return json(lane(conversation), { method: "POST", body: form, headers: { "Idempotency-Key": key } });
}

/** The events of a lane as they come, from after `last` on; ends when the connection does, `onOpen` is when it begins. */
export async function* events(conversation, agent, last, stop, onOpen) {
  const after = last ? { "Last-Event-ID": last } : {};
  const options = { headers: { Accept: "text/event-stream", ...after }, signal: stop, cache: "no-store" };
  const response = await answered(`${lane(conversation)}/events${of(agent)}`, options);
  onOpen();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  while (true) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value.replaceAll("\r\n", "\n");
    const parts = held.split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      const found = parsed(part);
      if (found) yield found;
    }
  }
}

function parsed(part) {
  let id = "";
  const data = [];
  for (const line of part.split("\n")) {
    const value = line.slice(line.indexOf(":") + 1).replace(/^ /, "");
    if (line.startsWith("data:")) data.push(value);
    if (line.startsWith("id:")) id = value;
  }
  if (!data.length) return null;
  try {
    return { id, data: JSON.parse(data.join("\n")) };
  } catch {
    return null;
  }
}
