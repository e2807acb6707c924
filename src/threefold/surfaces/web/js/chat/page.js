// Chat: conversations at the side, one of them with its turns, and what is going on in it now.
import { agents as found, call } from "../api.js";
import { html, useEffect, useLoaded, useMemo, useRef, useState } from "../dom.js";
import { leads } from "../refs.js";
import { go, href, route, settle } from "../router.js";
import { attempt } from "../state.js";
import { Empty, IconButton, Loaded, More } from "../ui/parts.js";
import { Marks, When, counted, glance } from "../text.js";
import { Conversation } from "./conversation.js";
import { begun, chosenAgent, newName, rememberAgent } from "./drafts.js";

const LIMIT = 30;

export function Chat() {
  const name = route.value.parts[0];
  const [started, setStarted] = useState("");
  // A new conversation has its name before its first word, so that nothing moves when that is sent.
  const fresh = useMemo(() => (name ? "" : newName()), [name]);
  const { agent = "", turn } = route.value.query;
  useEffect(() => {
    if (name) begun(name);
    if (name && agent) rememberAgent(name, agent);
  }, [name, agent]);
  const choose = (chosen) => {
    if (name) rememberAgent(name, chosen);
    settle(name ? ["chat", name] : ["chat"], { agent: chosen, turn });
  };
  const there = useLoaded((stop) => found(stop), []);
  const agents = { list: there.value || [], chosen: agent, choose };
  const opened = (id) => {
    setStarted(id);
    if (!name) go(["chat", id], { agent });
  };
  return html`<div class=${name ? "chat open" : "chat"}>
    <${Side} chosen=${name} started=${started} />
    <${Conversation} key=${name || fresh} id=${name || fresh} isNew=${!name} turn=${turn} agents=${agents} onStarted=${opened} />
  </div>`;
}

function Side({ chosen, started }) {
  const [query, setQuery] = useState("");
  return html`<aside class="side" aria-label="Conversations">
    <div class="side-head"><h2>Conversations</h2><${IconButton} icon="add" label="New conversation" onClick=${() => go(["chat"])} /></div>
    <input type="search" aria-label="Search conversations" placeholder="Search conversations" dir="auto" value=${query} onInput=${(e) => setQuery(e.target.value)} />
    ${query.trim() ? html`<${FoundList} query=${query.trim()} chosen=${chosen} />` : html`<${List} chosen=${chosen} started=${started} />`}
  </aside>`;
}

function List({ chosen, started }) {
  const page = useLoaded((stop) => call("conv", "list", { limit: LIMIT }, { signal: stop }), [started]);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    const recorded = () => page.again();
    addEventListener("recorded", recorded);
    return () => removeEventListener("recorded", recorded);
  }, []);
  const asked = useRef(false);
  const more = async () => {
    // A second click comes before the button can be taken away.
    if (asked.current) return;
    asked.current = true;
    setBusy(true);
    await attempt(async () => {
      const next = await call("conv", "list", { limit: LIMIT, cursor: page.value.next });
      page.put(({ conversations }) => {
        const known = new Set(conversations.map((each) => each.id));
        return { conversations: [...conversations, ...next.conversations.filter((each) => !known.has(each.id))], next: next.next };
      });
    });
    asked.current = false;
    setBusy(false);
  };
  return html`<${Loaded} of=${page}>${(found) =>
    found.conversations.length
      ? html`<ul class="conversations">${found.conversations.map((each) => html`<${Line} key=${each.id} each=${each} chosen=${chosen} />`)}</ul><${More} next=${found.next} busy=${busy} onMore=${more} />`
      : html`<${Empty} title="Nothing recorded yet">Ask something, or <a href=${href(["import"])}>import</a> what you said elsewhere.</${Empty}>`}</${Loaded}>`;
}

function Line({ each, chosen }) {
  return html`<li><a href=${href(["chat", each.id], { agent: chosenAgent(each.id) })} aria-current=${each.id === chosen ? "page" : undefined}>
    <span class="line-title" dir="auto">${each.title || each.id}</span>
    <span class="line-about"><${When} at=${each.last_activity} /> · ${counted(each.turns, "turn")}</span></a></li>`;
}

function FoundList({ query, chosen }) {
  const found = useLoaded((stop) => call("conv", "search", { query, group: "conversation", limit: 20, size: 120 }, { signal: stop }), [query]);
  return html`<${Loaded} of=${found}>${({ hits }) =>
    hits.length
      ? html`<ul class="conversations">${hits.map((hit) => html`<li key=${hit.ref}><a href=${leads(hit.ref)} aria-current=${hit.conversation === chosen ? "page" : undefined}>
          <span class="line-title"><${Marks} text=${glance(hit.text)} words=${hit.matched} /></span><span class="line-about"><${When} at=${hit.at} /> · <span dir="auto">${hit.conversation}</span></span></a></li>`)}</ul>`
      : html`<${Empty} title="No conversation has it">Try other words, or <a href=${href(["search"], { q: query })}>search everything</a>.</${Empty}>`}</${Loaded}>`;
}
