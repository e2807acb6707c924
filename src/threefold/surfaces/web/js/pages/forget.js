// Forgetting: what will go is counted and said, a word is asked for, then it goes, one after the other.
import { call } from "../api.js";
import { html, useState } from "../dom.js";
import { countProposals, fail, tell } from "../state.js";
import { counted } from "../text.js";
import { Confirm } from "../ui/parts.js";

/** What can be forgotten: how it is listed, in pages, and how one of it is removed. */
const KINDS = {
  conversations: { label: "Conversations", one: "conversation", list: ["conv", "list", {}, "conversations"], remove: (each) => ["conv", "delete", { conversation: each.id }] },
  memories: { label: "Memories", one: "memory", many: "memories", list: ["mem", "list", { layers: ["working", "session", "longterm"], statuses: ["proposed", "active", "weakened", "superseded", "merged", "retired", "rejected"] }, "memories"], remove: (each) => ["mem", "delete", { id: each.id }] },
  documents: { label: "Documents", one: "document", list: ["doc", "list", {}, "documents"], remove: (each) => ["doc", "delete", { id: each.id }] },
  boards: { label: "Boards", one: "board", list: ["cnv", "list", { archived: true }, "boards"], remove: (each) => ["cnv", "delete", { board: each.name }] },
};

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

export function Forget() {
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
    countProposals();
  };
  return html`<p>Removes for good, from every file of the store. To keep a copy, export first.</p>
    <fieldset class="checks"><legend class="hidden">What to forget</legend>${Object.entries(KINDS).map(([name, kind]) => html`<label key=${name}><input type="checkbox" checked=${chosen.includes(name)} onChange=${() => toggle(name)} /> ${kind.label}</label>`)}</fieldset>
    <div class="actions start"><button type="button" class="danger" disabled=${!chosen.length} onClick=${look}>Forget…</button></div>
    ${found && html`<${Confirm} title="Forget all of this?" action="Forget for good" word="forget" onDo=${forget} onClose=${() => setFound(null)}>
      <p>This will go:</p><ul>${found.map((kind) => html`<li key=${kind.label}>${counted(kind.items.length, kind.one, kind.many)}</li>`)}</ul>
      ${left !== null && html`<p role="status">${left} left…</p>`}</${Confirm}>`}`;
}
