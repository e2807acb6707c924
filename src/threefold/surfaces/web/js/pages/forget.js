// Forgetting: what will go is counted and said, a word is asked for, then it goes; or everything at once.
import { call } from "../api.js";
import { html, useState } from "../dom.js";
import { go } from "../router.js";
import { attempt, countProposals, fail, may, mayArrange, me, tell } from "../state.js";
import { counted } from "../text.js";
import { Confirm, Lacks } from "../ui/parts.js";

/** What can be forgotten: whether one may, how it is listed, in pages, and how one of it is removed. */
const KINDS = {
  conversations: { label: "Conversations", one: "conversation", allowed: () => may("conv:write"), list: ["conv", "list", {}, "conversations"], remove: (each) => ["conv", "delete", { conversation: each.id }] },
  memories: { label: "Memories", one: "memory", many: "memories", allowed: () => mayArrange("mem"), list: ["mem", "list", { layers: ["working", "session", "longterm"], statuses: ["proposed", "active", "weakened", "superseded", "merged", "retired", "rejected"] }, "memories"], remove: (each) => ["mem", "delete", { id: each.id }] },
  documents: { label: "Documents", one: "document", allowed: () => may("doc:write"), list: ["doc", "list", {}, "documents"], remove: (each) => ["doc", "delete", { id: each.id }] },
  boards: { label: "Boards", one: "board", allowed: () => mayArrange("cnv"), list: ["cnv", "list", { archived: true }, "boards"], remove: (each) => ["cnv", "delete", { board: each.name }] },
};
const EVERY = ["all:write", "conv:write", "mem:write", "doc:write", "cnv:write"];

async function all({ list: [namespace, operation, given, name] }) {
  const found = [];
  let cursor = null;
  do {
    const page = await call(namespace, operation, { ...given, limit: 100, cursor });
    found.push(...page[name]);
    cursor = page.next;
  } while (cursor);
  return found;
}

/** Everything that shows what was there looks again. */
function changed() {
  for (const name of ["recorded", "memories"]) dispatchEvent(new CustomEvent(name));
  countProposals();
}

export function Forget() {
  const kinds = Object.entries(KINDS).filter(([, kind]) => kind.allowed());
  return html`<p>Removes for good, from every file of the store. To keep a copy, export first.</p>
    ${kinds.length > 0 && html`<${Some} kinds=${kinds} />`}
    <${Everything} />`;
}

/** One kind after the other. */
function Some({ kinds }) {
  const [chosen, setChosen] = useState([]);
  const [found, setFound] = useState(null);
  const [left, setLeft] = useState(null);
  const toggle = (name) => setChosen(chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name]);
  const look = async () => {
    try {
      setFound(await Promise.all(chosen.map(async (name) => ({ ...KINDS[name], items: await all(KINDS[name]) }))));
    } catch (error) {
      fail(error);
    }
  };
  const forget = async () => {
    const work = found.flatMap((kind) => kind.items.map(kind.remove));
    try {
      for (const [at, [namespace, operation, given]] of work.entries()) {
        setLeft(work.length - at);
        await call(namespace, operation, given);
      }
      tell("Forgotten: nothing of it is in any file of the store");
    } catch (error) {
      fail(error);
    }
    setLeft(null);
    changed();
  };
  return html`<fieldset class="checks"><legend class="hidden">What to forget</legend>${kinds.map(([name, kind]) => html`<label key=${name}><input type="checkbox" checked=${chosen.includes(name)} onChange=${() => toggle(name)} /> ${kind.label}</label>`)}</fieldset>
    <div class="actions start"><button type="button" class="danger" disabled=${!chosen.length} onClick=${look}>Forget…</button></div>
    ${found && html`<${Confirm} title="Forget all of this?" action="Forget for good" word="forget" onDo=${forget} onClose=${() => setFound(null)}>
      <p>This will go:</p><ul>${found.map((kind) => html`<li key=${kind.label}>${counted(kind.items.length, kind.one, kind.many)}</li>`)}</ul>
      ${left !== null && html`<p role="status">${left} left…</p>`}</${Confirm}>`}`;
}

/** All of the person at once; their own name is the word that is asked for. */
function Everything() {
  const [asking, setAsking] = useState(false);
  const lacking = EVERY.filter((grant) => !may(grant));
  if (!me.value) return null;
  if (me.value.agent) return html`<p class="notice">Only the person forgets everything, not an agent.</p>`;
  if (lacking.length) return html`<${Lacks} what="forget everything" grants=${lacking} />`;
  const { user, app } = me.value;
  const forget = async () => {
    const receipt = await attempt(() => call("all", "forget", { confirm: user }));
    if (!receipt) return;
    const { leftovers } = receipt;
    tell(leftovers.length ? `Forgotten, all but this: ${leftovers.join(" ")}` : "Everything is forgotten: nothing of it is in any file of the store");
    changed();
    go(["chat"]);
  };
  return html`<p>Or everything at once. Your name is asked for before.</p>
    <div class="actions start"><button type="button" class="danger" onClick=${() => setAsking(true)}>Forget everything…</button></div>
    ${asking && html`<${Confirm} title=${app ? "Forget all that this app recorded?" : "Forget everything?"} action="Forget everything for good" word=${user} onDo=${forget} onClose=${() => setAsking(false)}>
      <p>Conversations with their files, memories with their history, documents, boards, and what waits to be answered go, at once. Nobody can bring them back. Your tokens stay until they are revoked.</p></${Confirm}>`}`;
}
