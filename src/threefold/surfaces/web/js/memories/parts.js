// What a memory looks like in a list, and what is done with it there.
import { call } from "../api.js";
import { html, useEffect } from "../dom.js";
import { href } from "../router.js";
import { attempt, countProposals, mayArrange, teaching } from "../state.js";
import { Marks, When, percent } from "../text.js";
import { Bar } from "../ui/contextview.js";
import { Badge, IconButton, ObjectActions } from "../ui/parts.js";

/** Change a memory; lists that show it are told. */
export async function change(operation, given, done, undo = true) {
  const action = undo ? { label: "Undo", run: () => change("undo", { id: given.id }, "Taken back", false) } : null;
  const made = await attempt(() => call("mem", operation, given), done, action);
  if (made) dispatchEvent(new CustomEvent("memories", { detail: made }));
  countProposals();
  return made;
}

/** Calls `changed` whenever a memory was changed in these pages; the event's `detail` is that memory, where it is one. */
export function useChanges(changed) {
  useEffect(() => {
    addEventListener("memories", changed);
    return () => removeEventListener("memories", changed);
  });
}

/** @param {{ memory: any, words?: string[], children?: any }} props */
export function MemoryCard({ memory, words = [], children, actions = true }) {
  return html`<li class=${`memory ${memory.status}`}>
    <p class="memory-text"><a href=${href(["memories", memory.id])}><${Marks} text=${memory.memory} words=${words} /></a></p>
    ${memory.context && html`<p class="quiet memory-why" dir="auto">${memory.context}</p>`}
    <p class="memory-about"><${Badge}>${memory.kind}</${Badge}> <span class="quiet">${memory.layer}</span>
      ${memory.status !== "active" && html`<${Badge} tone=${memory.status}>${memory.status}</${Badge}>`}
      ${memory.pinned && html`<${Badge} tone="accent">pinned</${Badge}>`}
      ${memory.tags.map((tag) => html`<span class="tag" dir="auto" key=${tag}>${tag}</span>`)}
      <${When} at=${memory.updated} /><span class="grow"></span>
      ${actions && html`<${Quick} memory=${memory} />`}</p>
    ${children}</li>`;
}

function Quick({ memory }) {
  const held = ["active", "weakened"].includes(memory.status);
  const mine = mayArrange("mem");
  return html`<span class="object-actions">
    ${held && mine && html`<button type="button" class="link" aria-pressed=${memory.pinned} onClick=${() => change("pin", { id: memory.id, pinned: !memory.pinned }, memory.pinned ? "Not pinned any more" : "Pinned: every turn begins with it")}>${memory.pinned ? "Unpin" : "Pin"}</button>`}
    ${mine && html`<${IconButton} icon="note" label="Change" onClick=${() => (teaching.value = memory)} />`}
    <${ObjectActions} ref_=${memory.ref} title=${memory.memory} remember=${false} /></span>`;
}

const SCORES = ["salience", "confidence", "importance", "freshness", "relevance"];

export function Scores({ scores }) {
  return html`<dl class="scores">${SCORES.map((name) => html`<div key=${name}><dt>${name}</dt><dd><${Bar} value=${scores[name]} of=${1} label=${percent(scores[name])} /></dd></div>`)}</dl>`;
}
