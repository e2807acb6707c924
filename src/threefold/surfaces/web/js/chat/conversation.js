// One conversation: its turns as they were, then what runs now, then where one writes.
import { call } from "../api.js";
import { html, useEffect, useLayoutEffect, usePolling, useRef, useState, useTitle } from "../dom.js";
import { escapeId } from "../refs.js";
import { go, settle } from "../router.js";
import { attempt, countProposals, may, pinning } from "../state.js";
import { brief } from "../text.js";
import { Confirm, Empty, Failed, IconButton } from "../ui/parts.js";
import { Composer } from "./composer.js";
import { attach, draft } from "./drafts.js";
import { useLane } from "./lane.js";
import { LiveTurn, Spoken } from "./live.js";
import { Turn } from "./turn.js";
import { useTurns } from "./turns.js";

const NEAR = 120;
// Every so many milliseconds it is looked whether a turn was recorded that nothing here told of, such as by an agent that
// was chosen in another window.
const EVERY = 7000;

/** Keeps the end in view where one is at the end, and the wanted turn where there is one. */
function useScroll(turns, lane, wanted) {
  const at = useRef(null);
  const stuck = useRef(!wanted);
  const found = useRef("");
  useLayoutEffect(() => {
    const box = at.current;
    if (wanted && found.current !== wanted) {
      const turn = [...box.querySelectorAll(".turn")].find((each) => each.dataset.ref === wanted);
      if (!turn) return;
      found.current = wanted;
      turn.scrollIntoView({ block: "start" });
      turn.focus({ preventScroll: true });
      stuck.current = false;
      return;
    }
    if (stuck.current) box.scrollTop = box.scrollHeight;
  }, [turns, lane.live, lane.state, lane.lost, wanted]);
  const scrolled = () => {
    const box = at.current;
    stuck.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
  };
  return { at, scrolled, toEnd: () => (stuck.current = true) };
}

export function Conversation({ id, isNew, turn, agents, onStarted }) {
  const turns = useTurns(id, turn, isNew);
  const changed = () => {
    dispatchEvent(new CustomEvent("recorded"));
    countProposals();
  };
  const lane = useLane(id, agents.chosen, isNew, async () => {
    await turns.renew();
    changed();
  });
  usePolling(async () => {
    if (document.hidden || isNew || lane.state.turn) return;
    // Where that fails it is tried again.
    if (await turns.look().catch(() => false)) changed();
  }, EVERY);
  const scroll = useScroll(turns.turns, lane, turn);
  const opening = turns.turns.find((each) => each.ordinal === 1)?.messages[0] || (turns.turns.length ? null : lane.state.submissions[0]);
  const title = opening?.text.trim().split("\n")[0].slice(0, 300) || (isNew ? "New conversation" : id);
  useTitle(brief(title));
  const dropped = (event) => {
    event.preventDefault();
    attach(id, [...draft(id).value.files, ...event.dataTransfer.files]);
  };
  const sent = async ({ detail }) => {
    if (detail.conversation !== id) return;
    scroll.toEnd();
    // What is said now comes at the end: one is led there from where one reads.
    if (turns.later) settle(["chat", id], { agent: agents.chosen });
    await lane.accepted(detail.after);
    if (latest.current) onStarted(id);
  };
  const latest = useRef(null);
  useEffect(() => {
    const heard = (event) => latest.current(event);
    addEventListener("accepted", heard);
    return () => {
      removeEventListener("accepted", heard);
      latest.current = null;
    };
  }, []);
  latest.current = sent;
  const quiet = !turns.turns.length && !lane.state.turn && !lane.state.waiting.length;
  const nothing = quiet && !turns.loading && !turns.error;
  return html`<section class="talk" aria-label="Conversation" onDragOver=${(e) => e.preventDefault()} onDrop=${dropped}>
    <${Head} id=${id} title=${title} isNew=${isNew || nothing} />
    <div class="turns" ref=${scroll.at} onScroll=${scroll.scrolled} tabindex="0" role="log" aria-live="off" aria-label="Turns">
      ${turns.error && html`<${Failed} error=${turns.error} again=${turns.again} />`}
      ${turns.earlier && html`<div class="more"><button type="button" onClick=${() => attempt(() => turns.more("earlier"))}>Earlier turns</button></div>`}
      ${turns.loading && html`<div class="loading" aria-busy="true"><span class="hidden">Loading</span></div>`}
      ${nothing && html`<${Welcome} isNew=${isNew} />`}
      ${turns.turns.map((each) => html`<${Turn} key=${each.ref} turn=${each} reread=${turns.reread} wanted=${each.ref === turn} />`)}
      ${turns.later && html`<div class="more"><button type="button" onClick=${() => attempt(() => turns.more("later"))}>Later turns</button></div>`}
      ${!isNew || lane.state.turn ? html`<${LiveTurn} lane=${lane} recorded=${turns.turns} />` : null}
    </div>
    <${Spoken} live=${lane.live} />
    <${Composer} id=${id} lane=${lane} agents=${agents} />
  </section>`;
}

function Head({ id, title, isNew }) {
  const [asking, setAsking] = useState(false);
  const ref = `conv:conversation:${escapeId(id)}`;
  const forget = async () => {
    if (await attempt(() => call("conv", "delete", { conversation: id }), "Removed for good")) {
      go(["chat"]);
      dispatchEvent(new CustomEvent("recorded"));
    }
  };
  return html`<header class="talk-head"><${IconButton} icon="back" flip class="to-list" label="All conversations" onClick=${() => go(["chat"])} />
    <h1 dir="auto">${title}</h1>
    ${!isNew && html`<span class="object-actions">${may("cnv:propose") && html`<${IconButton} icon="boards" label="Pin the conversation to a board" onClick=${() => (pinning.value = { ref, title })} />`}
      ${may("conv:write") && html`<${IconButton} icon="bin" label="Remove the conversation" onClick=${() => setAsking(true)} />`}</span>`}
    ${asking && html`<${Confirm} title="Remove this conversation?" action="Remove for good" onDo=${forget} onClose=${() => setAsking(false)}>
      <p>All its turns go, with their files, from every file of the store. Memories and boards stay; what they point to here will be gone.</p></${Confirm}>`}
  </header>`;
}

function Welcome({ isNew }) {
  return isNew
    ? html`<${Empty} title="What is on your mind?">Ask, and you get an answer with its sources. Without a chat model it is quoted from what is kept here.</${Empty}>`
    : html`<${Empty} title="Nothing here">No turn of this conversation is recorded, or none any more. What you send begins it.</${Empty}>`;
}
