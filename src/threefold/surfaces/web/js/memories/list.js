import { call } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { href, route, settle } from "../router.js";
import { may, teaching } from "../state.js";
import { Why } from "../ui/why.js";
import { Empty, Field, Loaded, More } from "../ui/parts.js";
import { usePaged } from "../ui/paging.js";
import { LAYERS } from "../ui/teaching.js";
import { MemoryCard, useChanges } from "./parts.js";

const STATUSES = ["proposed", "active", "weakened", "superseded", "merged", "retired", "rejected"];

async function found(asked, part, stop) {
  const narrow = { layers: asked.layer ? [asked.layer] : null, statuses: asked.status ? [asked.status] : null };
  if (!asked.q) return call("mem", "list", { ...narrow, ...part }, { signal: stop });
  const answer = await call("mem", "search", { query: asked.q, ...narrow, limit: part.limit, explain: true }, { signal: stop });
  return { ...answer, next: null };
}

/** Memories by layer and status, or what answers a question. */
export function List() {
  const asked = route.value.query;
  const [text, setText] = useState(asked.q || "");
  const list = usePaged("memories", 30, (part, stop) => found(asked, part, stop), [asked.q, asked.layer, asked.status]);
  useChanges(({ detail: made }) => {
    // What is as it was in what the list is narrowed by stays where one looks at it.
    const stays = (each) => each.id === made?.id && each.status === made.status && each.layer === made.layer;
    if (!list.value?.memories.some(stays)) return list.again();
    return list.put((page) => ({ ...page, memories: page.memories.map((each) => (stays(each) ? { ...each, ...made } : each)) }));
  });
  useEffect(() => setText(asked.q || ""), [asked.q]);
  const put = (more) => settle(["memories"], { ...asked, ...more });
  const narrowed = asked.q || asked.layer || asked.status;
  return html`<form class="search-form" role="search" onSubmit=${(e) => { e.preventDefault(); put({ q: text.trim() }); }}>
      <input type="search" aria-label="Search memories" placeholder="Search memories" dir="auto" value=${text} onInput=${(e) => { setText(e.target.value); if (!e.target.value) put({ q: "" }); }} /><button>Search</button></form>
    <div class="fields both"><${Field} label="Layer"><select value=${asked.layer || ""} onChange=${(e) => put({ layer: e.target.value })}><option value="">every layer</option>${LAYERS.map((each) => html`<option key=${each}>${each}</option>`)}</select></${Field}>
      <${Field} label="Status"><select value=${asked.status || ""} onChange=${(e) => put({ status: e.target.value })}><option value="">what is held</option>${STATUSES.map((each) => html`<option key=${each}>${each}</option>`)}</select></${Field}></div>
    <${Loaded} of=${list}>${(page) => html`${(page.warnings || []).map((warning) => html`<p class="notice">${warning}</p>`)}
      ${page.memories.length ? html`<ul class="memories">${page.memories.map((memory) => html`<${MemoryCard} key=${memory.id} memory=${memory} words=${memory.matched}>${memory.explain && html`<${Why} explain=${memory.explain} score=${memory.score} />`}</${MemoryCard}>`)}</ul>`
        : narrowed ? html`<${Empty} title="No memory like that"><a href=${href(["memories"])}>All that are held</a></${Empty}>`
          : html`<${Empty} title="Nothing is held yet">Small notes of what is true: how you like things, what was decided.${may("mem:write") && html`<p class="more"><button type="button" onClick=${() => (teaching.value = {})}>Remember something</button></p>`}</${Empty}>`}
      <${More} next=${page.next} busy=${list.busy} onMore=${list.more} />`}</${Loaded}>`;
}
