// One memory: its evidence, its scores, what became of it.
import { call } from "../api.js";
import { html, useLoaded, useState, useTitle } from "../dom.js";
import { kindName, kindOf, leads } from "../refs.js";
import { go, href } from "../router.js";
import { attempt, mayArrange, teaching } from "../state.js";
import { When, brief } from "../text.js";
import { Badge, Confirm, Loaded, ObjectActions } from "../ui/parts.js";
import { Scores, change, useChanges } from "./parts.js";

const read = async (id, stop) => {
  const [memory, history] = await Promise.all([call("mem", "get", { id }, { signal: stop }), call("mem", "history", { id }, { signal: stop })]);
  return { memory, revisions: history.revisions };
};

export function Detail({ id }) {
  const found = useLoaded((stop) => read(id, stop), [id]);
  useChanges(found.again);
  return html`<p><a href=${href(["memories"])}>All memories</a></p><${Loaded} of=${found}>${({ memory, revisions }) => html`<${Whole} memory=${memory} revisions=${revisions} />`}</${Loaded}>`;
}

function Whole({ memory, revisions }) {
  useTitle(brief(memory.memory, 60));
  const [asking, setAsking] = useState(false);
  const { id } = memory;
  const remove = async () => {
    if (await attempt(() => call("mem", "delete", { id }), "Removed for good")) go(["memories"]);
  };
  return html`<article class="memory-whole"><h1 dir="auto">${memory.memory}</h1>
    ${memory.context && html`<p class="lead" dir="auto">${memory.context}</p>`}
    <p class="memory-about"><${Badge}>${memory.kind}</${Badge}> <span class="quiet">${memory.layer}</span> <${Badge} tone=${memory.status}>${memory.status}</${Badge}>
      ${memory.pinned && html`<${Badge} tone="accent">pinned</${Badge}>`}${memory.tags.map((tag) => html`<span class="tag" dir="auto" key=${tag}>${tag}</span>`)}
      <span class="quiet">revision ${memory.revision}</span><span class="grow"></span><${ObjectActions} ref_=${memory.ref} title=${memory.memory} remember=${false} /></p>
    ${memory.superseded_by && html`<p class="notice"><a href=${href(["memories", memory.superseded_by])}>Another memory</a> stands in its place.</p>`}
    ${mayArrange("mem") && html`<${Actions} memory=${memory} changes=${revisions.length} ask=${() => setAsking(true)} />`}
    <div class="two"><section><h2>Scores</h2><${Scores} scores=${memory.scores} /></section>
    <section><h2>Evidence</h2><ul class="evidence">${memory.evidence.map((each, at) => html`<li key=${at}>${each.signal} by ${each.agent ? html`<span dir="auto">${each.agent}</span>` : each.by} <${When} at=${each.at} />
      ${each.source && html` · <a href=${leads(each.source)}>${kindName(kindOf(each.source))}</a>`}${each.note && html`<p class="quiet" dir="auto">${each.note}</p>`}</li>`)}</ul></section></div>
    <section><h2>History</h2><ol class="history" reversed>${[...revisions].reverse().map((each) => html`<li key=${each.record.revision}>
      <p><strong>${each.act}</strong> by ${each.agent ? html`<span dir="auto">${each.agent}</span>` : each.by} <${When} at=${each.at} />${each.why && html` · <q dir="auto">${each.why}</q>`}</p><p dir="auto">${each.record.memory}</p></li>`)}</ol></section>
    ${asking && html`<${Confirm} title="Remove this memory?" action="Remove for good" onDo=${remove} onClose=${() => setAsking(false)}><p>It goes with its history, from every file of the store. To keep the history, retire it.</p></${Confirm}>`}
  </article>`;
}

function Actions({ memory, changes, ask }) {
  const { id } = memory;
  const held = ["active", "weakened"].includes(memory.status);
  const button = (label, operation, given, done) => html`<button type="button" onClick=${() => change(operation, { id, ...given }, done)}>${label}</button>`;
  return html`<div class="actions start">
    <button type="button" class="primary" onClick=${() => (teaching.value = memory)}>Change</button>
    ${memory.status === "proposed" && button("Confirm", "confirm", {}, "Confirmed")}
    ${memory.status === "proposed" && button("Reject", "reject", {}, "Rejected")}
    ${held && button(memory.pinned ? "Unpin" : "Pin", "pin", { pinned: !memory.pinned }, memory.pinned ? "Not pinned any more" : "Pinned")}
    ${held && button("Still so", "confirm", {}, "Held more firmly")}
    ${held && button("Not so any more", "contradict", {}, "Held less firmly")}
    ${held && button("Retire", "retire", {}, "Held no more")}
    ${changes > 1 && button("Undo the last change", "undo", {}, "Taken back")}
    <button type="button" class="danger" onClick=${ask}>Remove</button></div>`;
}
