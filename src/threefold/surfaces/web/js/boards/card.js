// A card: what its object shows at this moment, a note, comments, and what is suggested of it.
import { html, useRef, useState } from "../dom.js";
import { kindName, kindOf, leads } from "../refs.js";
import { When, glance } from "../text.js";
import { Dialog, Empty, Field, IconButton } from "../ui/parts.js";
import { useGestures } from "./gestures.js";
import { rectOf } from "./writing.js";

export function Card({ card, held, onOpen, origin, list = false }) {
  const rect = rectOf(card, held.moved);
  const { handle, pressed } = useGestures(card, rect, held);
  const { write, writes } = held;
  const note = () => onOpen({ card: card.id, what: "note" });
  const comments = () => onOpen({ card: card.id, what: "comments" });
  const bin = () => write([{ op: "bin", card: card.id }], { done: "In the bin", undo: [{ op: "restore", card: card.id }] });
  const keys = (event) => {
    if (event.target !== event.currentTarget) return;
    const changes = writes ? { n: note, Delete: bin, Backspace: bin } : {};
    const does = { Enter: () => (location.hash = leads(card.ref)), c: comments, ...changes };
    if (!list && writes && pressed(event)) event.preventDefault();
    else if (does[event.key] && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      does[event.key]();
    }
  };
  const { shown } = card;
  const there = shown.standing === "there";
  const title = there ? shown.title || card.ref : card.note || card.ref;
  const style = list ? undefined : { left: `${rect.x - origin.left}px`, top: `${rect.y - origin.top}px`, width: `${rect.w}px`, height: `${rect.h}px` };
  const hint = list || !writes ? "" : ", arrows move it";
  return html`<li class=${`card ${card.state} ${there ? "" : "gone"}`} style=${style}><div class="card-in" tabindex="0" role="group" aria-label=${`${title}${hint}`} data-card=${card.id} onKeyDown=${keys}>
    <div class=${list || !writes ? "card-head" : "card-head movable"} ...${list || !writes ? {} : handle("move")}><span class="kind">${kindName(shown.kind || kindOf(card.ref))}</span>${shown.at && html`<${When} at=${shown.at} />`}<span class="grow"></span>
      ${writes && html`<${IconButton} icon="note" label=${card.note ? "Change the note" : "Write a note"} onClick=${note} />`}
      <button type="button" class="bare" aria-label=${`Comments: ${card.comments.length}`} title="Comments" onClick=${comments}><span class="count">${card.comments.length}</span></button>
      ${writes && html`<${IconButton} icon="bin" label="Into the bin" onClick=${bin} />`}</div>
    <div class="card-body" tabindex=${list || there ? undefined : "0"}>
      ${card.note && html`<p class="card-note" dir="auto">${card.note}</p>`}
      ${there ? html`<${Preview} shown=${shown} ref_=${card.ref} />`
        : html`<p class="card-title" dir="auto">${shown.title || card.ref}</p><p class="quiet" dir="auto">${shown.why || shown.standing}</p>`}</div>
    ${card.suggestion && html`<${Suggested} card=${card} write=${write} writes=${writes} />`}
    ${!list && writes && html`<span class="card-corner" aria-hidden="true" ...${handle("resize")}></span>`}
  </div></li>`;
}

/** A title with what is below it; a title that is only the beginning of a text is that text. */
function Preview({ shown, ref_ }) {
  const text = glance(shown.text || "");
  const title = glance(shown.title || ref_);
  const begins = title.endsWith("…") && text.startsWith(title.slice(0, -1).trim());
  if (begins) return html`<p class="card-text whole"><a href=${leads(ref_)} dir="auto">${text}</a></p>`;
  const rest = text.startsWith(title) ? text.slice(title.length).trim() : text;
  return html`<p class="card-title"><a href=${leads(ref_)} dir="auto">${title}</a></p>${rest && html`<p class="card-text" dir="auto">${rest}</p>`}`;
}

function Suggested({ card, write, writes }) {
  const { act, why, agent, by } = card.suggestion;
  const answer = (op, done) => () => write([{ op, card: card.id }], { done });
  return html`<div class="suggested"><p><strong dir="auto">${agent || by}</strong> suggests ${act === "bin" ? "to put it into the bin" : "this card"}${why && html`: <span dir="auto">${why}</span>`}</p>
    ${writes && html`<button type="button" onClick=${answer("decline", "Declined: it is not suggested again")}>Decline</button><button type="button" class="primary" onClick=${answer("accept", "Accepted")}>Accept</button>`}</div>`;
}

/** What is open of a card. It is the board's, so that it stays with what was typed where the card does not. */
export function CardDialog({ open, held, onClose }) {
  const { board, error, write, writes } = held;
  const last = useRef(null);
  const found = board.cards.find((card) => card.id === open.card);
  last.current = found || last.current;
  const removed = error?.status === 404 ? "The board was removed meanwhile." : found ? "" : "This card was removed for good meanwhile.";
  const binned = found && found.state !== "placed" && found.state !== "suggested";
  const gone = html`<div role="status">${removed ? html`<p class="notice">${removed} What you wrote can still be copied from here.</p>`
    : binned ? html`<p class="notice">This card is in the bin by now. What you save stays with it there.</p>` : ""}</div>`;
  const Form = open.what === "note" ? Note : Comments;
  return html`<${Form} card=${last.current} gone=${gone} removed=${Boolean(removed)} write=${write} writes=${writes} onClose=${onClose} />`;
}

/** The text stays where a write is refused. */
function Note({ card, gone, removed, write, onClose }) {
  const [text, setText] = useState(card.note);
  const save = async (event) => {
    event.preventDefault();
    if (await write([{ op: "annotate", card: card.id, note: text }], { done: "Noted" })) onClose();
  };
  return html`<${Dialog} title="Note" onClose=${onClose}>${gone}<form onSubmit=${save}>
    <${Field} label="Why it is here"><textarea autofocus rows="4" maxlength="4000" dir="auto" value=${text} onInput=${(e) => setText(e.target.value)}></textarea></${Field}>
    ${text !== card.note && card.note && html`<p class="quiet">It says now: <q dir="auto">${card.note}</q></p>`}
    <div class="actions"><button type="button" onClick=${onClose}>Cancel</button><button class="primary" disabled=${removed}>Save</button></div></form></${Dialog}>`;
}

function Comments({ card, gone, removed, write, writes, onClose }) {
  const [text, setText] = useState("");
  const say = async (event) => {
    event.preventDefault();
    if (text.trim() && (await write([{ op: "comment", card: card.id, text }]))) setText("");
  };
  return html`<${Dialog} title="Comments" onClose=${onClose}>${gone}
    <ol class="history">${card.comments.map((each) => html`<li key=${each.id}><p><strong dir="auto">${each.agent || (each.by === "user" ? "You" : each.by)}</strong> <${When} at=${each.at} /></p><p class="plain" dir="auto">${each.text}</p></li>`)}</ol>
    ${!card.comments.length && !writes && html`<${Empty} title="No comments">Nobody said anything of this card.</${Empty}>`}
    ${writes && html`<form onSubmit=${say}><${Field} label="Say something of it"><textarea autofocus rows="2" maxlength="4000" dir="auto" value=${text} onInput=${(e) => setText(e.target.value)}></textarea></${Field}>
    <div class="actions"><button type="button" onClick=${onClose}>Close</button><button class="primary" disabled=${removed || !text.trim()}>Say it</button></div></form>`}</${Dialog}>`;
}
