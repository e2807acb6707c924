// One board: its cards where they lie, or as a list; what is suggested; what is in the bin; what became of it.
import { call } from "../api.js";
import { html, useLoaded, useRef, useState, useTitle } from "../dom.js";
import { go, href, route, settle } from "../router.js";
import { attempt } from "../state.js";
import { When, counted } from "../text.js";
import { Badge, Confirm, Dialog, Empty, Failed, Field, Loaded, ObjectLine } from "../ui/parts.js";
import { Card, CardDialog } from "./card.js";
import { useBoard } from "./writing.js";

const ROOM = 240;

export function BoardView({ name }) {
  const held = useBoard(name);
  const { board, error } = held;
  const [open, setOpen] = useState(null);
  useTitle(board?.title || name);
  if (!board && error?.status === 404) return html`<${NoBoard} name=${name} held=${held} />`;
  if (!board) return error ? html`<div class="column"><h1 dir="auto">${name}</h1><${Failed} error=${error} again=${held.reload} /><p><a href=${href(["boards"])}>All boards</a></p></div>` : html`<div class="loading" aria-busy="true"><span class="hidden">Loading</span></div>`;
  const cards = (state) => board.cards.filter((card) => state.includes(card.state));
  const lying = cards(["placed", "suggested"]);
  // On a narrow window one reads from top to bottom.
  const list = (route.value.query.as || (innerWidth < 700 ? "list" : "board")) === "list";
  return html`<section class="board-page">
    <${Head} held=${held} binned=${cards(["binned", "declined"])} list=${list} />
    ${error && html`<${Stale} error=${error} again=${held.reload} />`}
    ${lying.length ? html`<${Surface} cards=${lying} held=${held} list=${list} onOpen=${setOpen} />` : html`<${Empty} title="Nothing lies here yet">Find something and pin it: press <kbd>/</kbd>, or use the pin beside anything you see.</${Empty}>`}
    ${open && html`<${CardDialog} open=${open} held=${held} onClose=${() => setOpen(null)} />`}</section>`;
}

/** Why the board is shown as it was; a server that does not answer is asked again by itself. */
function Stale({ error, again }) {
  if (error.status && error.status < 500) return html`<${Failed} error=${error} again=${again} />`;
  return html`<p class="notice" role="status">The server does not answer; trying again. The board is shown as it was, and may be out of date.</p>`;
}

function NoBoard({ name, held }) {
  const make = () => attempt(() => call("cnv", "upsert", { board: name, title: name })).then(held.reload);
  return html`<div class="column"><h1 dir="auto">${name}</h1><${Empty} title="There is no board of this name"><p>It was removed, or never made. <a href=${href(["boards"])}>All boards</a></p>
    ${held.writes && html`<p class="more"><button type="button" onClick=${make}>Make it</button></p>`}</${Empty}></div>`;
}

/**
 * Cards in the order of reading, so that Tab goes as the eye does. While one looks at them it stays as it was: a card that
 * changed its place among the others would lose the focus.
 */
function useOrder(cards) {
  const known = useRef(new Map());
  const sorted = [...cards].sort((a, b) => a.rect.y - b.rect.y || a.rect.x - b.rect.x);
  for (const card of sorted) if (!known.current.has(card.id)) known.current.set(card.id, known.current.size);
  return sorted.sort((a, b) => known.current.get(a.id) - known.current.get(b.id));
}

function Surface({ cards, held, list, onOpen }) {
  const order = useOrder(cards);
  if (list) return html`<ul class="card-list">${order.map((card) => html`<${Card} key=${card.id} card=${card} held=${held} onOpen=${onOpen} list />`)}</ul>`;
  const left = Math.min(0, ...cards.map((card) => card.rect.x));
  const top = Math.min(0, ...cards.map((card) => card.rect.y));
  const width = Math.max(...cards.map((card) => card.rect.x + card.rect.w)) - left + ROOM;
  const height = Math.max(...cards.map((card) => card.rect.y + card.rect.h)) - top + ROOM;
  return html`<div class="board-scroll" tabindex="-1"><ul class="board" aria-label="Cards" style=${{ width: `${width}px`, height: `${height}px` }}>
    ${order.map((card) => html`<${Card} key=${card.id} card=${card} held=${held} onOpen=${onOpen} origin=${{ left, top }} />`)}</ul></div>`;
}

function Head({ held, binned, list }) {
  const { board, write, writes } = held;
  const [open, setOpen] = useState("");
  const close = () => setOpen("");
  return html`<header class="board-head"><h1 dir="auto">${board.title || board.name}</h1>
    <span class="quiet" aria-live="polite">revision ${board.revision}${board.archived ? html` <${Badge}>archived</${Badge}>` : ""}</span><span class="grow"></span>
    <button type="button" aria-pressed=${list} onClick=${() => settle(["boards", board.name], { as: list ? "board" : "list" })}>As a list</button>
    ${writes && html`<button type="button" onClick=${() => setOpen("bin")}>Bin${binned.length ? html` <${Badge}>${binned.length}</${Badge}>` : ""}</button>`}
    <button type="button" onClick=${() => setOpen("history")}>History</button>
    ${writes && html`<button type="button" onClick=${() => setOpen("settings")}>Board…</button>`}
    ${open === "bin" && html`<${Bin} cards=${binned} write=${write} name=${board.name} onClose=${close} reload=${held.reload} />`}
    ${open === "history" && html`<${History} board=${board} onClose=${close} />`}
    ${open === "settings" && html`<${BoardSettings} board=${board} write=${write} onClose=${close} />`}</header>`;
}

function Bin({ cards, write, name, onClose, reload }) {
  const [asking, setAsking] = useState(null);
  const remove = async () => {
    await attempt(() => call("cnv", "remove", { board: name, card: asking.id }), "Removed for good");
    await reload();
  };
  return html`<${Dialog} title="Bin" onClose=${onClose}>${cards.length
    ? html`<ul class="rows">${cards.map((card) => html`<li key=${card.id}><div><${ObjectLine} shown=${card.shown} />${card.note && html`<p class="quiet" dir="auto">${card.note}</p>`}</div>
        <span class="actions"><button type="button" onClick=${() => write([{ op: "restore", card: card.id }], { done: "Restored" })}>Restore</button><button type="button" class="danger" onClick=${() => setAsking(card)}>Remove</button></span></li>`)}</ul>`
    : html`<${Empty} title="The bin is empty">Cards that are put away can be restored from here.</${Empty}>`}
    ${asking && html`<${Confirm} title="Take the card off for good?" action="Remove for good" onDo=${remove} onClose=${() => setAsking(null)}><p>Its note and comments go, from old revisions too. What it stands for stays where it is.</p></${Confirm}>`}</${Dialog}>`;
}

function History({ board, onClose }) {
  const found = useLoaded((stop) => call("cnv", "history", { board: board.name, limit: 50 }, { signal: stop }), [board.revision]);
  const titles = Object.fromEntries(board.cards.map((card) => [card.id, card.shown.title || card.ref]));
  return html`<${Dialog} title="History" onClose=${onClose}><${Loaded} of=${found}>${({ revisions }) => html`<ol class="history" reversed>${revisions.map((each) => html`<li key=${each.revision}>
    <p><strong>${each.acts.join(", ")}</strong> by ${each.agent || each.by} <${When} at=${each.at} /> <span class="quiet">revision ${each.revision}</span></p>
    ${each.cards.length > 0 && html`<p class="quiet" dir="auto">${each.cards.slice(0, 3).map((id) => titles[id] || id).join(" · ")}${each.cards.length > 3 ? ` and ${each.cards.length - 3} more` : ""}</p>`}</li>`)}</ol>`}</${Loaded}></${Dialog}>`;
}

function BoardSettings({ board, write, onClose }) {
  const [title, setTitle] = useState(board.title);
  const [conversation, setConversation] = useState("");
  const [asking, setAsking] = useState(false);
  const known = useLoaded((stop) => call("conv", "list", { limit: 50 }, { signal: stop }), []);
  const rename = async (event) => {
    event.preventDefault();
    if (await write([{ op: "rename", title }], { done: "Renamed" })) onClose();
  };
  const attach = async (event) => {
    event.preventDefault();
    if (await write([{ op: "attach", conversation: conversation.trim() }], { done: "Attached: its contexts show this board" })) setConversation("");
  };
  const remove = async () => {
    if (await attempt(() => call("cnv", "delete", { board: board.name }), "Removed for good")) go(["boards"]);
  };
  const archive = async () => {
    if (await write([{ op: board.archived ? "reopen" : "archive" }], { done: board.archived ? "In the list again" : "Archived" })) onClose();
  };
  return html`<${Dialog} title="Board" onClose=${onClose}>
    <form class="inline" onSubmit=${rename}><${Field} label="What it is called"><input required maxlength="200" dir="auto" value=${title} onInput=${(e) => setTitle(e.target.value)} /></${Field}><button>Rename</button></form>
    <form class="inline" onSubmit=${attach}><${Field} label="Attach it to a conversation" hint="What an agent is given there shows its cards."><input required list="board-threads" dir="auto" value=${conversation} onInput=${(e) => setConversation(e.target.value)} />
      <datalist id="board-threads">${(known.value?.conversations || []).map((each) => html`<option key=${each.id} value=${each.id}>${each.title}</option>`)}</datalist></${Field}><button>Attach</button></form>
    ${board.attached.length > 0 && html`<ul class="chips">${board.attached.map((each) => html`<li class="chip" key=${each}><a href=${href(["chat", each])} dir="auto">${each}</a> <button type="button" class="link" onClick=${() => write([{ op: "detach", conversation: each }])}>Detach</button></li>`)}</ul>`}
    <p class="quiet">${counted(board.cards.length, "card")}, made <${When} at=${board.created} /></p>
    <div class="actions"><button type="button" onClick=${archive}>${board.archived ? "Put back into the list" : "Archive"}</button><button type="button" class="danger" onClick=${() => setAsking(true)}>Remove the board</button></div>
    ${asking && html`<${Confirm} title="Remove this board?" action="Remove for good" onDo=${remove} onClose=${() => setAsking(false)}><p>Its cards, notes and comments go, from every file of the store. What the cards stand for stays.</p></${Confirm}>`}</${Dialog}>`;
}
