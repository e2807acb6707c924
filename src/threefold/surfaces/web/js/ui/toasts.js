import { html } from "../dom.js";
import { dismiss, toasts } from "../state.js";
import { Icon } from "./icons.js";

/** What is told for a while. Within a dialog there is one of its own: what is behind it can be neither read nor pressed. */
export function Toasts() {
  const row = (toast) => html`<div class=${`toast ${toast.kind}`} key=${toast.id}><p dir="auto">${toast.text}</p>
    ${toast.action && html`<button type="button" onClick=${() => { dismiss(toast.id); toast.action.run(); }}>${toast.action.label}</button>`}
    <button type="button" class="bare" aria-label="Dismiss" onClick=${() => dismiss(toast.id)}><${Icon} name="close" /></button></div>`;
  const of = (kind) => toasts.value.filter((toast) => toast.kind === kind).map(row);
  return html`<div class="toasts"><div role="status" aria-live="polite">${of("done")}</div><div role="alert">${of("error")}</div></div>`;
}
