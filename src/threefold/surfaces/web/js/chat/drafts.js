// What is being written in each conversation, and what was sent and not acknowledged yet. It outlives the page that shows it.
import { submit } from "../api.js";
import { signal } from "../dom.js";
import { fail, newKey } from "../state.js";

const DRAFT = "threefold.written.";
const SENT = "threefold.sent.";
const FILES = "threefold.files.";
const AGENT = "threefold.agent.";
const NEW = "threefold.new";

function stored(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key));
  } catch {
    return null;
  }
}

function keep(key, value) {
  try {
    if (value?.length || value?.key) sessionStorage.setItem(key, JSON.stringify(value));
    else sessionStorage.removeItem(key);
  } catch {
    // known to this page alone, then
  }
}

const boxes = new Map();
const named = (files) => files.map((file) => `${file.name} ${file.size}`);
const together = (first, then) => (then.trim() ? `${first}\n${then}` : first);

/** What is written in a conversation: a signal of `{ text, files, lost, busy, problem }`; files are `lost` in reloading. */
export function draft(id) {
  if (!boxes.has(id)) {
    const sent = stored(SENT + id);
    let text = stored(DRAFT + id) || "";
    if (sent?.flying) {
      // The page was left before an answer came: it is tried again as the same, under its key.
      text = together(sent.text, text);
      keep(SENT + id, { ...sent, flying: false });
      keep(DRAFT + id, text);
    }
    boxes.set(id, signal({ text, files: [], lost: stored(FILES + id) || [], busy: false, problem: "" }));
  }
  return boxes.get(id);
}

function put(id, change) {
  const box = draft(id);
  box.value = { ...box.value, ...change };
  keep(DRAFT + id, box.value.text);
  keep(FILES + id, [...box.value.lost, ...box.value.files.map((file) => file.name)]);
}

export const write = (id, text) => put(id, { text });
export const attach = (id, files) => put(id, { files, lost: [] });

/** The drafts that are seen now: what is wrong with another is told beside it. */
export const shown = new Set();

/**
 * Send what is written; what fails is put back, before what was written since. When it is acknowledged, whatever page is
 * shown then, `accepted` is told to the window.
 */
export async function send(id, agent, kind) {
  const { text, files, busy } = draft(id).value;
  if (!text.trim() || busy) return;
  // The same, sent twice because no answer came, is one submission: under one key, and of one kind.
  const before = stored(SENT + id);
  const same = before?.text === text && before.agent === agent && before.files.join("\n") === named(files).join("\n");
  const submission = same ? before : { text, agent, kind, files: named(files), key: newKey() };
  keep(SENT + id, { ...submission, flying: true });
  put(id, { text: "", files: [], lost: [], busy: true, problem: "" });
  try {
    const accepted = await submit(id, agent, { ...submission, files });
    keep(SENT + id, null);
    begun(id);
    put(id, { busy: false });
    dispatchEvent(new CustomEvent("accepted", { detail: { conversation: id, ...accepted } }));
  } catch (error) {
    const since = draft(id).value;
    keep(SENT + id, { ...submission, flying: false });
    put(id, { text: together(text, since.text), files: [...files, ...since.files], busy: false, problem: error.message });
    if (!shown.has(id)) fail(error);
  }
}

/** The name of a new conversation: of the one that something was written for, as long as that is not sent, or another. */
export function newName() {
  const name = stored(NEW);
  if (name && [DRAFT, SENT, FILES].some((key) => stored(key + name))) return name;
  const today = new Date();
  const two = (value) => String(value).padStart(2, "0");
  const made = `chat-${today.getFullYear()}-${two(today.getMonth() + 1)}-${two(today.getDate())}-${newKey(4)}`;
  keep(NEW, made);
  return made;
}

/** A conversation is not new any more: it was sent to, or is looked at as one that is there. */
export function begun(id) {
  if (stored(NEW) === id) keep(NEW, null);
}

/** Which agent was chosen in a conversation, in this window. */
export const chosenAgent = (id) => stored(AGENT + id) || "";
export const rememberAgent = (id, agent) => keep(AGENT + id, agent);
