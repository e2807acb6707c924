// Small parts that every page is made of.
import { html, useEffect, useId, useRef, useState } from "../dom.js";
import { kindName, kindOf, leads } from "../refs.js";
import { href } from "../router.js";
import { may, pinning, teaching, tell } from "../state.js";
import { When } from "../text.js";
import { Icon } from "./icons.js";
import { Toasts } from "./toasts.js";

/** Where one pressed beside a dialog; its own scrollbar is within. */
function beside(dialog, { clientX: x, clientY: y }) {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return x < left || x >= right || y < top || y >= bottom;
}

const filled = (dialog) => [...dialog.querySelectorAll("input:not([role=combobox]), textarea")].some((field) => field.value);

/** A dialog that holds the focus; Escape closes it, and a click beside it where that loses nothing that was typed. */
export function Dialog({ title, onClose, children, wide = false }) {
  const at = useRef(null);
  const changed = useRef(false);
  const label = useId();
  const pressed = (event) => {
    const dialog = at.current;
    if (event.target === dialog && beside(dialog, event) && !(changed.current && filled(dialog))) onClose();
  };
  useEffect(() => {
    const dialog = at.current;
    const before = document.activeElement;
    dialog.showModal();
    dialog.querySelector("[autofocus]")?.focus();
    return () => {
      dialog.close();
      // What it was opened from may be gone.
      (before?.isConnected ? before : document.getElementById("main"))?.focus();
    };
  }, []);
  return html`<dialog ref=${at} class=${wide ? "wide" : ""} aria-labelledby=${label} onCancel=${(event) => {
    event.preventDefault();
    onClose();
  }} onMouseDown=${pressed} onInput=${() => (changed.current = true)}>
    <div class="dialog">
      <header><h2 id=${label}>${title}</h2><${IconButton} icon="close" label="Close" onClick=${onClose} /></header>
      ${children}
    </div>
    <${Toasts} />
  </dialog>`;
}

/** Asks before something is lost; `word`, where given, must be typed. */
export function Confirm({ title, children, action, word, onDo, onClose }) {
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const run = async (event) => {
    event.preventDefault();
    setBusy(true);
    await onDo();
    onClose();
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${run}>
      ${children}
      ${word && html`<label class="field">Type <strong><bdi>${word}</bdi></strong> to go on<input dir="auto" value=${typed} onInput=${(e) => setTyped(e.target.value)} autocomplete="off" /></label>`}
      <div class="actions"><button type="button" onClick=${onClose}>Cancel</button>
        <button class="danger" disabled=${busy || (word && ![typed, typed.trim()].includes(word))}>${busy ? "Working…" : action}</button></div>
    </form>
  </${Dialog}>`;
}

export function IconButton({ icon, label, flip, class: extra = "", ...rest }) {
  return html`<button type="button" class=${`bare ${extra}`} aria-label=${label} title=${label} ...${rest}><${Icon} name=${icon} flip=${flip} /></button>`;
}

/** What is shown where there is nothing: what to do next. */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p><div>${children}</div></div>`;
}

/** Why something could not be shown, in the server's words, and a way to try again. */
export function Failed({ error, again }) {
  return html`<div class="notice bad" role="alert"><p>${error.message}</p>${again && html`<button type="button" onClick=${again}>Try again</button>`}</div>`;
}

/** One of three: loading for the first time, failed, or what there is. */
export function Loaded({ of, children }) {
  if (of.error && of.value === undefined) return html`<${Failed} error=${of.error} again=${of.again} />`;
  if (of.value === undefined) return html`<div class="loading" aria-busy="true"><span class="hidden">Loading</span></div>`;
  return html`${of.error && html`<${Failed} error=${of.error} again=${of.again} />`}${children(of.value)}`;
}

export function Badge({ children, tone = "" }) {
  return html`<span class=${`badge ${tone}`}>${children}</span>`;
}

/** What the token does not allow, and how to get there. */
export function Lacks({ what, grants }) {
  return html`<p class="notice">This token may not ${what}. It lacks ${grants.map((grant, at) => html`${at ? ", " : ""}<code>${grant}</code>`)}: whoever runs the server makes another with <code>threefold tokens create</code>, and you paste it under <a href=${href(["settings"])}>Settings</a>.</p>`;
}

/** Pages of a list: what is there, and a button for more. */
export function More({ next, busy, onMore, label = "Show more" }) {
  return next ? html`<div class="more"><button type="button" disabled=${busy} onClick=${onMore}>${busy ? "Loading…" : label}</button></div>` : null;
}

/** The actions that every object has: pin it to a board, remember something of it, copy its reference. */
export function ObjectActions({ ref_, title, remember = true }) {
  return html`<span class="object-actions">
    ${may("cnv:propose") && html`<${IconButton} icon="boards" label="Pin to board" onClick=${() => (pinning.value = { ref: ref_, title })} />`}
    ${remember && (may("mem:write") || may("mem:propose")) && html`<${IconButton} icon="memories" label="Remember something of it" onClick=${() => (teaching.value = { memory: selected(), source: ref_ })} />`}
    <${IconButton} icon="link" label="Copy reference" onClick=${() => copy(ref_)} />
  </span>`;
}

/** Puts a reference on the clipboard, which there is for pages of a secure origin alone; elsewhere it is shown, to be copied by hand. */
async function copy(ref) {
  try {
    await navigator.clipboard.writeText(ref);
    tell("Copied");
  } catch {
    tell(`This page may not copy. The reference is: ${ref}`, "error");
  }
}

const selected = () => String(getSelection() || "").trim().slice(0, 500);

/** What a reference names, in a line that opens it. `shown` is as `describe` gives it. */
export function ObjectLine({ shown }) {
  const there = shown.standing === "there";
  return html`<div class=${there ? "object" : "object gone"}>
    <span class="kind">${kindName(shown.kind || kindOf(shown.ref))}</span>
    ${there ? html`<a href=${leads(shown.ref)} dir="auto">${shown.title || shown.ref}</a>` : html`<span dir="auto">${shown.title || shown.ref}: ${shown.why || shown.standing}</span>`}
    ${shown.at && html`<${When} at=${shown.at} />`}
  </div>`;
}

/** A field whose value is text, with its label. */
export function Field({ label, hint, children }) {
  return html`<label class="field"><span>${label}</span>${children}${hint && html`<small>${hint}</small>`}</label>`;
}

/** Tabs that are links: each can be shared. */
export function Tabs({ label, tabs, chosen }) {
  return html`<nav class="tabs" aria-label=${label}>${tabs.map(
    (tab) => html`<a key=${tab.name} href=${tab.href} aria-current=${tab.name === chosen ? "page" : undefined}>${tab.label}${tab.badge ? html` <${Badge} tone="accent">${tab.badge}</${Badge}>` : ""}</a>`,
  )}</nav>`;
}

/** The files that were dropped on it, or chosen. */
export function Drop({ label, hint, accept, multiple = true, onFiles }) {
  const [over, setOver] = useState(false);
  const at = useRef(null);
  const take = (list) => list.length && onFiles([...list]);
  return html`<div class=${over ? "drop over" : "drop"} onDragOver=${(e) => { e.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)}
    onDrop=${(e) => { e.preventDefault(); setOver(false); take(e.dataTransfer.files); }}>
    <input ref=${at} type="file" class="hidden" tabindex="-1" aria-label=${label} accept=${accept} multiple=${multiple} onChange=${(e) => { take(e.target.files); e.target.value = ""; }} />
    <${Icon} name="import" flip />
    <p><button type="button" onClick=${() => at.current.click()}>${label}</button> <span>or drop them here</span></p>
    <p class="quiet">${hint}</p>
  </div>`;
}

/** Saves bytes under a name. */
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
