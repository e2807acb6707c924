import { call } from "../api.js";
import { html, useLoaded } from "../dom.js";
import { mayArrange, teaching } from "../state.js";
import { Empty, Loaded } from "../ui/parts.js";
import { MemoryCard, change, useChanges } from "./parts.js";

/** What agents suggest; nothing of it is held before the person says so. */
export function Proposals() {
  const list = useLoaded((stop) => call("mem", "proposals", { limit: 100 }, { signal: stop }), []);
  useChanges(list.again);
  const answer = async (operation, memory, done) => {
    if (await change(operation, { id: memory.id }, done)) list.put((before) => ({ ...before, memories: before.memories.filter((each) => each.id !== memory.id) }));
  };
  return html`<${Loaded} of=${list}>${({ memories }) => memories.length
    ? html`<ul class="memories">${memories.map((memory) => html`<${MemoryCard} key=${memory.id} memory=${memory} actions=${false}>${mayArrange("mem") && html`<div class="actions">
        <button type="button" onClick=${() => answer("reject", memory, "Rejected: it is not asked again")}>Reject</button>
        <button type="button" onClick=${() => (teaching.value = memory)}>Change</button>
        <button type="button" class="primary" onClick=${() => answer("confirm", memory, "Confirmed: it is held from now on")}>Confirm</button></div>`}</${MemoryCard}>`)}</ul>`
    : html`<${Empty} title="Nothing waits for you">What agents suggest to remember appears here.</${Empty}>`}</${Loaded}>`;
}
