// A recorded turn, as it was.
import { call } from "../api.js";
import { html, useLoaded, useState } from "../dom.js";
import { address, kindName, kindOf } from "../refs.js";
import { attempt, may } from "../state.js";
import { Markdown, When, brief, counted, glance } from "../text.js";
import { Badge, Dialog, Field, IconButton, ObjectActions } from "../ui/parts.js";
import { Given } from "./given.js";
import { FileCard, Said, Step } from "./pieces.js";

const ENDED = { failed: "failed", cancelled: "was stopped" };

// `ref` means something else to what draws.
const props = ({ ref: _, ...rest }) => rest;

/** What the labels of an answer stand for. */
const labels = (turn) => Object.fromEntries(turn.citations.filter((each) => each.title && each.url).map((each) => [each.title, each.url]));

export function Turn({ turn, reread, wanted }) {
  const [given, setGiven] = useState(false);
  const refs = labels(turn);
  const said = turn.messages;
  // Files came with the first words; what was done stands before what came of it.
  const opening = said.findIndex((message) => message.role !== "user");
  const first = opening < 0 ? said.length : opening;
  const end = said.findLastIndex((message) => message.kind === "completion");
  const last = end < 0 ? said.length : end;
  const computed = turn.context.find((event) => event.event === "computed_context");
  const title = brief(said[0]?.text || "") || turn.turn;
  const line = (message) => html`<${Said} key=${message.ref} ...${props(message)} refs=${refs} agent=${turn.agent} />`;
  return html`<article class=${wanted ? "turn wanted" : "turn"} data-ref=${turn.ref} tabindex="-1" aria-label=${`Turn ${turn.ordinal}`}>
    ${said.slice(0, first).map(line)}
    ${turn.attachments.map((file) => html`<${FileCard} key=${file.ref} file=${file} label="attached" />`)}
    ${said.slice(first, last).map(line)}
    ${turn.steps.length > 0 && html`<${Steps} steps=${turn.steps} />`}
    ${said.slice(Math.max(first, last)).map(line)}
    ${turn.files.map((file) => html`<${FileCard} key=${file.ref} file=${file} label="made" />`)}
    ${turn.citations.length > 0 && html`<${Sources} citations=${turn.citations} />`}
    ${(turn.notes.length > 0 || turn.summary) && html`<${Notes} notes=${turn.notes} summary=${turn.summary} />`}
    ${ENDED[turn.status] && html`<p class="notice bad">This turn ${ENDED[turn.status]}${turn.error && turn.error !== turn.status ? html`: <bdi>${turn.error}</bdi>` : ""}.</p>`}
    <footer class="turn-foot">
      <span class="quiet">${turn.agent && html`<span dir="auto">${turn.agent}</span> · `}<${When} at=${turn.ended} />${Object.keys(turn.redacted).length > 0 && html` · <${Badge}>redacted</${Badge}>`}</span>
      ${computed && html`<button type="button" class="link" aria-expanded=${given} onClick=${() => setGiven(!given)}>What the agent was given</button>`}
      <span class="grow"></span>
      ${may("conv:write") && html`<${Feedback} turn=${turn} reread=${reread} />`}
      <${ObjectActions} ref_=${turn.ref} title=${title} />
    </footer>
    ${given && html`<${Given} payload=${computed.payload} />`}
  </article>`;
}

function Steps({ steps }) {
  return html`<details class="steps"><summary>${counted(steps.length, "step")}</summary>${steps.map((step) => html`<${Step} key=${step.ref} ...${props(step)} />`)}</details>`;
}

// What a reference of this store, or of an app beside it, begins with.
const OURS = /^[a-z][a-z0-9_-]*:(?!\/\/)[^\s]+$/;

/** Where an answer came from. */
function Sources({ citations }) {
  const refs = [...new Set(citations.map((each) => each.url).filter((url) => OURS.test(url)))].slice(0, 100);
  const shown = useLoaded(async (stop) => (refs.length ? (await call("all", "describe", { refs, size: 80 }, { signal: stop })).objects : []), [refs.join()]);
  const titles = Object.fromEntries((shown.value || []).map((each) => [each.ref, glance(each.title || each.text || "")]));
  return html`<section class="sources" aria-label="Sources"><h3>Sources</h3><ul>${citations.map((each) => {
    const url = each.url || each.ref;
    const label = each.title && each.title !== url ? each.title : "";
    return html`<li key=${each.ref}>${label && html`<span class="cite" dir="auto">${label}</span>`} <a ...${address(url)} title=${url} dir="auto">${titles[url] || url}</a>${OURS.test(url) && html`<span class="kind">${kindName(kindOf(url))}</span>`}</li>`;
  })}</ul></section>`;
}

function Notes({ notes, summary }) {
  return html`<details class="steps"><summary>Notes of the agent</summary>
    ${summary && html`<${Markdown} text=${summary.text || ""} />`}
    ${notes.map((note) => html`<div class="note" key=${note.ref}>${note.tag && html`<span class="kind" dir="auto">${note.tag}</span>`}<${Markdown} text=${note.text || ""} /></div>`)}</details>`;
}

function Feedback({ turn, reread }) {
  const [asking, setAsking] = useState(false);
  const mine = [...turn.feedback].reverse().find((each) => each.origin === "user");
  const reaction = mine?.reaction ?? null;
  const put = (chosen, text) => attempt(async () => {
    await call("conv", "feedback", { ref: turn.ref, reaction: chosen, text }, { keep: ["reaction"] });
    await reread(turn.ref);
  });
  const yes = () => put(reaction === "ok" ? null : "ok");
  const no = () => (reaction === "not_ok" ? put(null) : setAsking(true));
  return html`<span class="feedback" role="group" aria-label="Was it good?">
    <${IconButton} icon="down" flip label="Good answer" aria-pressed=${reaction === "ok"} class="thumb-up" onClick=${yes} />
    <${IconButton} icon="down" label="Not a good answer" aria-pressed=${reaction === "not_ok"} class="thumb-down" onClick=${no} />
    ${mine?.text && html`<span class="quiet" dir="auto">“${mine.text}”</span>`}
    ${asking && html`<${Why} onClose=${() => setAsking(false)} onSay=${(text) => put("not_ok", text)} />`}</span>`;
}

function Why({ onSay, onClose }) {
  const [text, setText] = useState("");
  const send = async (event) => {
    event.preventDefault();
    if (await onSay(text)) onClose();
  };
  return html`<${Dialog} title="What was not good?" onClose=${onClose}><form onSubmit=${send}>
    <${Field} label="In a few words" hint="It is kept with the turn, and agents see it. May be empty."><textarea autofocus rows="3" dir="auto" value=${text} onInput=${(e) => setText(e.target.value)}></textarea></${Field}>
    <div class="actions"><button type="button" onClick=${onClose}>Cancel</button><button class="primary">Say so</button></div></form></${Dialog}>`;
}
