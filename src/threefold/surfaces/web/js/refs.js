// References: where in the pages each leads, and what it is called.
import { href } from "./router.js";

const plain = (part) => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

/** An id as references have it: separators escaped, letters of every script as they are. */
export const escapeId = (id) => id.replace(/[^A-Za-z0-9_~-]/gu, (sign) => (/[^\x00-\x7f]/.test(sign) && !/[\p{Z}\p{C}]/u.test(sign) ? sign : encoded(sign)));

const encoded = (sign) => Array.from(new TextEncoder().encode(sign), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");

/** The conversation and turn that a reference into the record names, where it names one. */
export function turnOf(ref) {
  const found = /^conv:[a-z]{2}:conv_([^.]+)\.turn_([^.]+)\./.exec(ref);
  return found ? { conversation: plain(found[1]), turn: plain(found[2]) } : null;
}

/** The reference of a whole turn. */
export const turnRef = (ref) => ref.replace(/^conv:[a-z]{2}:(conv_[^.]+\.turn_[^.]+)\..*$/, "conv:ar:$1.turn.log");

/** The address of what a reference names. */
export function leads(ref) {
  const turn = turnOf(ref);
  if (turn && !ref.startsWith("conv:fi:")) return href(["chat", turn.conversation], { turn: turnRef(ref) });
  const [namespace, ...rest] = ref.split(":");
  const tail = rest.join(":");
  if (ref.startsWith("conv:conversation:")) return href(["chat", plain(tail.slice("conversation:".length))]);
  if (ref.startsWith("mem:record:")) return href(["memories", plain(tail.slice("record:".length))]);
  if (namespace === "cnv") return href(["boards", plain(tail.split("@")[0])]);
  if (namespace === "doc") {
    const [id, chunk] = tail.split("#");
    return href(["documents", plain(id)], { chunk });
  }
  return href(["object", ref]);
}

const WEB = /^https?:\/\//i;

/** What a link to a source is given: it may lie in the web. */
export const address = (ref) => (WEB.test(ref) ? { href: ref, rel: "noopener noreferrer", target: "_blank" } : { href: leads(ref) });

const NAMES = {
  conversation: "conversation", turn: "turn", message: "message", note: "note", summary: "summary", event: "event",
  step: "step", file: "file", sources: "sources", memory: "memory", document: "document", chunk: "passage",
  board: "board",
};

/** What an object of this kind is called. */
export const kindName = (kind) => NAMES[kind] || kind || "object";

/** The kind of what a reference names, as far as the reference tells. */
export function kindOf(ref) {
  if (ref.startsWith("conv:fi:")) return "file";
  if (ref.startsWith("conv:conversation:")) return "conversation";
  if (ref.startsWith("conv:tc:")) return "step";
  if (ref.startsWith("conv:")) return ref.endsWith(".turn.log") ? "turn" : "message";
  if (ref.startsWith("mem:")) return "memory";
  if (ref.startsWith("doc:")) return ref.includes("#") ? "chunk" : "document";
  return ref.startsWith("cnv:") ? "board" : ref.split(":")[1] || "object";
}
