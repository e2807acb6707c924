// What turns are made of, live ones and recorded ones alike.
import { bytes } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { leads } from "../refs.js";
import { attempt } from "../state.js";
import { Markdown, Quotes, When, size } from "../text.js";
import { save } from "../ui/parts.js";

const KINDS = { followup: "follow-up", steer: "steer", partial: "interrupted" };
// Longer ones are folded: one reads on where one wants to.
const LONG = 6_000;
const SHOWN = /^image\/(?:png|jpeg|gif|webp)$/;

// The agent that answers without a model: it quotes, and what it quotes is not its own Markdown.
const FINDER = "finder";

/** What an agent said. */
export function Answer({ text, refs, agent }) {
  return agent === FINDER ? html`<${Quotes} text=${text} refs=${refs} />` : html`<${Markdown} text=${text} refs=${refs} />`;
}

/** A bubble. */
export function Said({ role, kind, text, at, author, refs, agent }) {
  const [open, setOpen] = useState(text.length <= LONG);
  const shown = open ? text : text.slice(0, LONG);
  const who = author || (role === "user" ? "You" : "Answer");
  return html`<div class=${`said ${role}`}>
    <p class="said-by"><span dir="auto">${who}</span>${KINDS[kind] ? html` <span class="kind">${KINDS[kind]}</span>` : ""} <${When} at=${at} /></p>
    ${role === "user" ? html`<div class="plain" dir="auto">${shown}</div>` : html`<${Answer} text=${shown} refs=${refs} agent=${agent} />`}
    ${!open && html`<button type="button" class="link" onClick=${() => setOpen(true)}>Read on (${text.length - LONG} characters more)</button>`}
  </div>`;
}

const told = (value) => (value === undefined || value === null || value === "" ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** Something the agent did, folded. */
export function Step({ name, status, arguments: given, result }) {
  const parts = [["given", told(given)], ["result", told(result)]].filter(([, text]) => text);
  const head = html`<span class=${`dot ${status}`} aria-hidden="true"></span><span dir="auto">${name}</span> <span class="quiet">${status}</span>`;
  if (!parts.length) return html`<p class="step">${head}</p>`;
  return html`<details class="step"><summary>${head}</summary>${parts.map(
    ([label, text]) => html`<p class="quiet">${label}</p><pre tabindex="0" dir="auto">${text.slice(0, 20_000)}</pre>`,
  )}</details>`;
}

/** A file that came with a turn or that it made: a picture is seen, any can be saved. */
export function FileCard({ file, label }) {
  const [url, setUrl] = useState("");
  const picture = SHOWN.test(file.mime || "") && file.size < 5_000_000;
  useEffect(() => {
    if (!picture) return undefined;
    const stop = new AbortController();
    let made = "";
    bytes(file.ref, stop.signal).then((blob) => {
      made = URL.createObjectURL(blob);
      setUrl(made);
    }, () => {});
    return () => {
      stop.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [file.ref, picture]);
  const load = () => attempt(async () => save(await bytes(file.ref), file.name.split("/").pop()));
  return html`<div class="file">
    ${picture && html`<span class="file-picture">${url && html`<img src=${url} alt=${file.name} />`}</span>`}
    <div><a href=${leads(file.ref)} dir="auto">${file.name}</a><p class="quiet">${label} · ${size(file.size)}</p></div>
    <button type="button" onClick=${load} aria-label=${`Save ${file.name}`}>Save</button></div>`;
}
