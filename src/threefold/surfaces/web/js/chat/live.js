// The turn that runs, as it is heard; what waits behind it.
import { html, useEffect, useRef, useState } from "../dom.js";
import { may } from "../state.js";
import { brief, counted } from "../text.js";
import { Answer, FileCard, Said, Step } from "./pieces.js";

/** A screen reader hears the answer by sentences, not letter by letter. */
function Spoken({ text, done }) {
  const [said, setSaid] = useState("");
  const latest = useRef(text);
  latest.current = text;
  useEffect(() => {
    const timer = setInterval(() => {
      const end = Math.max(...[". ", "! ", "? ", "\n", "。"].map((sign) => latest.current.lastIndexOf(sign)));
      if (end > 0) setSaid(latest.current.slice(0, end + 1));
    }, 1500);
    return () => clearInterval(timer);
  }, []);
  return html`<div class="hidden" aria-live="polite">${done ? text : said}</div>`;
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
      <${Spoken} text=${answer.map((message) => message.text).join("\n")} done=${Boolean(live.ended)} />
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
