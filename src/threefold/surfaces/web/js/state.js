// What the whole shell knows: messages to the person, the theme, what waits for a word, what is being pinned.
import { call } from "./api.js";
import { signal } from "./dom.js";

/** Messages that are shown for a while; errors until they are dismissed. */
export const toasts = signal([]);
let made = 0;

/** @param {"done" | "error"} kind */
export function tell(text, kind = "done", action = null) {
  const id = (made += 1);
  toasts.value = [...toasts.value.slice(-3), { id, text, kind, action }];
  if (kind === "done") setTimeout(() => dismiss(id), action ? 10_000 : 5_000);
}

export function dismiss(id) {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Says what went wrong; what was given up on purpose is no failure. */
export function fail(error) {
  if (error?.name !== "AbortError") tell(error?.message || String(error), "error");
}

/** Do something, say that it is done, or why not. Gives what it gave, or undefined. */
export async function attempt(work, done = "", action = null) {
  try {
    const value = await work();
    if (done) tell(done, "done", action);
    return value === undefined ? true : value;
  } catch (error) {
    fail(error);
    return undefined;
  }
}

const THEME = "threefold.theme";
export const theme = signal(stored());

function stored() {
  try {
    return localStorage.getItem(THEME) || "auto";
  } catch {
    return "auto";
  }
}

/** @param {"auto" | "light" | "dark"} name */
export function setTheme(name) {
  theme.value = name;
  try {
    localStorage.setItem(THEME, name);
  } catch {
    // the system's theme stays
  }
  dispatchEvent(new CustomEvent("theme"));
}

/** How many proposals wait for the person's word; null where that is not known. */
export const proposals = signal(null);

export async function countProposals() {
  try {
    const { memories, next } = await call("mem", "proposals", { limit: 100 });
    proposals.value = next ? "99+" : memories.length;
  } catch {
    proposals.value = null;
  }
}

/** As whom one is here: `{ user, tenant, app, agent, grants }`; null while that is not known. */
export const me = signal(null);

export async function learnMe() {
  me.value = null;
  try {
    me.value = await call("all", "whoami");
  } catch {
    // not known: what is asked for is refused in the server's words
  }
}

/** Whether a grant was given. While it is not known, one may try. */
export function may(grant) {
  const grants = me.value?.grants;
  return !grants || grants.includes(grant) || grants.includes(`*:${grant.split(":")[1]}`);
}

/** Whether one may change a namespace as its person does: agents suggest, whatever was granted. */
export const mayArrange = (namespace) => may(`${namespace}:write`) && !me.value?.agent;

/** What is to be pinned to a board: `{ ref, title, source }`. */
export const pinning = signal(null);
/** A memory that is being written: what its form begins with. */
export const teaching = signal(null);
/** Which of "palette" and "keys" is open. */
export const overlay = signal("");

/** A key that makes sending twice one thing; where the page is not of a secure origin, too. */
export function newKey(bytes = 12) {
  const drawn = crypto.getRandomValues(new Uint8Array(bytes));
  return Array.from(drawn, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
