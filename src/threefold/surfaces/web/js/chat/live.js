// The turn that runs, as it is heard; what waits behind it.
import { html, useLayoutEffect, useState } from "../dom.js";
import { may } from "../state.js";
import { brief, counted } from "../text.js";
import { Answer, FileCard, Said, Step } from "./pieces.js";

const ENDS = [". ", "! ", "? ", "\n", "。", "！", "？"];
const SILENT = { run: "", heard: 0, pieces: [] };

/**
 * What a screen reader hears of the answer: whole sentences as they come, and at its end what is left. It stays when the
 * turn that runs becomes a recorded one, until the next begins: what is taken away too soon is not read out.
 */
export function Spoken({ live }) {
  const [told, setTold] = useState(SILENT);
  const text = live.said.filter((each) => each.role !== "user" && each.text).map((each) => each.text).join("\n");
  useLayoutEffect(() => {
    if (!live.run) return;
    setTold((before) => {
      const now = before.run === live.run ? before : { ...SILENT, run: live.run };
      const end = live.ended ? text.length : Math.max(...ENDS.map((sign) => text.lastIndexOf(sign))) + 1;
      const piece = text.slice(now.heard, end).trim();
      return piece ? { ...now, heard: end, pieces: [...now.pieces, piece] } : now;
    });
  }, [live.run, live.ended, text]);
  return html`<div class="hidden" aria-live="polite">${told.pieces.map((piece, at) => html`<p key=${at}>${piece}</p>`)}</div>`;
}

// The first part of a turn: what is known is gathered.
const PHASES = { context: "Looking at what is kept…" };

/** What was said in the turn so far, in its order: submissions that no event told come first. */
function spoken(live, submissions) {
  const known = new Set(live.said.map((each) => each.id));
  const untold = submissions.filter((each) => !known.has(each.submission)).map((each) => ({ ...each, id: each.submission, role: "user" }));
  return [...untold, ...live.said.filter((each) => each.text)];
}

export function LiveTurn({ lane, recorded }) {
  const { live, state, lost } = lane;
  const known = new Set(recorded.map((turn) => turn.turn));
  const runs = state.turn && !known.has(state.turn);
  const said = spoken(live, state.submissions);
  const answer = said.filter((each) => each.role !== "user");
  return html`
    ${runs && html`<article class="turn live" aria-label="The turn that runs">
      ${said.map((each) => html`<${Line} key=${each.id} each=${each} refs=${live.refs} agent=${live.agent} />`)}
      ${live.steps.length > 0 && html`<details class="steps" open><summary>${counted(live.steps.length, "step")}</summary>${live.steps.map((step) => html`<${Step} key=${step.id} name=${step.name} status=${step.status} arguments=${step.args} result=${step.result} />`)}</details>`}
      ${!live.ended && html`<p class="working" role="status"><span class="dots" aria-hidden="true"><i></i><i></i><i></i></span><span class=${answer.length ? "hidden" : ""}>${PHASES[live.phase] || (live.phase ? html`<bdi>${live.phase}</bdi> works…` : "Working…")}</span></p>`}
      ${live.panels.map((panel) => html`<details class="steps" open key=${panel.id}><summary dir="auto">${panel.name}</summary><pre tabindex="0" dir="auto">${panel.text}</pre></details>`)}
      ${live.files.map((file) => html`<${FileCard} key=${file.ref} file=${{ name: file.path, ...file }} label="made" />`)}
      ${live.error && html`<p class="notice bad" role="alert">${live.error}</p>`}
    </article>`}
    ${state.waiting.length > 0 && html`<section class="waiting" aria-label="What waits"><h2>Waits for the next turn</h2>
      ${state.waiting.map((each) => html`<${Waiting} key=${each.submission} each=${each} lane=${lane} />`)}</section>`}
    ${lost && html`<p class="notice lost" role="status">The connection is broken; trying again. Nothing is lost: what was sent is kept.</p>`}`;
}

/** Something that waits, which can be taken back alone. */
function Waiting({ each, lane }) {
  const named = `Withdraw ${brief(each.text, 60)}`;
  return html`<div class="waits"><${Line} each=${{ ...each, role: "user" }} />
    ${may("conv:write") && html`<button type="button" class="link" aria-label=${named} onClick=${() => lane.takeBack(each.submission)}>Withdraw</button>`}</div>`;
}

function Line({ each, refs, agent }) {
  if (each.role !== "user") return html`<div class="said assistant"><${Answer} text=${each.text} refs=${refs} agent=${agent} /></div>`;
  return html`<${Said} role="user" kind=${each.kind} text=${each.text} at=${each.at} author=${each.author} />
    ${each.attachments?.length ? html`<ul class="chips" aria-label="Files">${each.attachments.map((file) => html`<li class="chip" dir="auto" key=${file.name}>${file.name}</li>`)}</ul>` : ""}`;
}
