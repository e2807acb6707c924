// A memory is written: a new one, or another wording of one that is there.
import { call } from "../api.js";
import { html, useState } from "../dom.js";
import { kindName, kindOf, leads } from "../refs.js";
import { go } from "../router.js";
import { attempt, may, tell, teaching } from "../state.js";
import { Dialog, Field } from "./parts.js";

export const LAYERS = ["working", "session", "longterm", "organizational", "global"];
const KINDS = ["fact", "preference", "decision", "constraint", "spec", "milestone"];
export const LIFE = {
  working: "five minutes", session: "an hour", longterm: "no end", organizational: "everyone of the tenant; waits for its word",
  global: "everyone",
};

export function TeachDialog({ first }) {
  const close = () => (teaching.value = null);
  return html`<${Dialog} title=${first.id ? "Change a memory" : "Remember something"} onClose=${close}>
    <${MemoryForm} key=${first.revision} first=${first} onDone=${close} /></${Dialog}>`;
}

const split = (text) => text.split(",").map((tag) => tag.trim()).filter(Boolean);

/** What is sent: of one that is changed only what differs, so that what others changed stays. */
function changes(first, now) {
  if (!first.id) return { ...now, source: first.source };
  const before = { ...fields(first) };
  const changed = Object.entries(now).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]));
  return { ...Object.fromEntries(changed), id: first.id, revision: first.revision };
}

/** Who may not hold a memory proposes it; who sees it is said by whoever confirms it. */
const proposed = ({ visibility: _, ...given }) => call("mem", "propose", given);

const fields = (memory) => ({
  memory: memory.memory || "", context: memory.context || "", kind: memory.kind || "fact", layer: memory.layer || "longterm",
  tags: memory.tags || [], importance: memory.importance ?? null, visibility: memory.visibility || "shared",
});

/**
 * @param {{ first: any, onDone: (made?: any) => void }} props
 */
export function MemoryForm({ first, onDone }) {
  const [now, setNow] = useState({ ...fields(first), ...first.wanted });
  const [tags, setTags] = useState(((first.wanted || first).tags || []).join(", "));
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const set = (name) => (event) => setNow({ ...now, [name]: event.target.value });
  const send = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      const importance = now.importance === null || now.importance === "" ? null : Number(now.importance);
      const given = changes(first, { ...now, importance, tags: split(tags) });
      const made = await (first.id || may("mem:write") ? call("mem", "upsert", given, { keep: first.id ? ["context"] : [] }) : proposed(given));
      tell(first.id ? "Changed" : made.status === "proposed" ? "Proposed" : "Remembered", "done", { label: "Open it", run: () => go(["memories", made.id]) });
      dispatchEvent(new CustomEvent("memories", { detail: made }));
      onDone(made);
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  return html`<form class="memory-form" onSubmit=${send}>
    <${Field} label="What is so, in a sentence"><textarea autofocus required rows="3" dir="auto" value=${now.memory} onInput=${set("memory")}></textarea></${Field}>
    <${Field} label="Why it is there" hint="Where it was said, an example"><textarea rows="2" dir="auto" value=${now.context} onInput=${set("context")}></textarea></${Field}>
    <div class="fields">
      <${Field} label="Kind"><input list="memory-kinds" value=${now.kind} onInput=${set("kind")} /><datalist id="memory-kinds">${KINDS.map((kind) => html`<option value=${kind} />`)}</datalist></${Field}>
      <${Field} label="Layer" hint=${`lives: ${LIFE[now.layer]}`}><select value=${now.layer} onChange=${set("layer")}>${LAYERS.map((layer) => html`<option key=${layer}>${layer}</option>`)}</select></${Field}>
      ${(first.id || may("mem:write")) && html`<${Field} label="Who sees it"><select value=${now.visibility} onChange=${set("visibility")}><option value="shared">agents and I</option><option value="user">only I</option><option value="agent">only agents</option></select></${Field}>`}
      <${Field} label="Tags" hint="with commas between"><input dir="auto" value=${tags} onInput=${(e) => setTags(e.target.value)} /></${Field}>
    </div>
    ${first.source && !first.id && html`<p class="quiet">Source: <a href=${leads(first.source)}>${kindName(kindOf(first.source))}</a></p>`}
    ${problem && html`<${Conflict} problem=${problem} first=${first} now=${{ ...now, tags: split(tags) }} />`}
    <div class="actions"><button type="button" onClick=${() => onDone()}>Cancel</button><button class="primary" disabled=${busy}>${first.id ? "Save" : may("mem:write") ? "Remember" : "Propose"}</button></div>
  </form>`;
}

/** What was in the way; after a conflict both wordings are seen, and nothing that was written is gone. */
function Conflict({ problem, first, now }) {
  const [theirs, setTheirs] = useState(null);
  const conflict = problem.status === 409 && first.id;
  const look = () => attempt(async () => setTheirs(await call("mem", "get", { id: first.id })));
  const over = () => (teaching.value = { ...theirs, wanted: now });
  return html`<div class="notice bad" role="alert"><p>${problem.message}</p>
    ${conflict && !theirs && html`<button type="button" onClick=${look}>See how it stands now</button>`}
    ${theirs && html`<p>It says now: <q dir="auto">${theirs.memory}</q></p><button type="button" onClick=${over}>Write mine over revision ${theirs.revision}</button>`}</div>`;
}
