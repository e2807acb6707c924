// Search over everything that is kept, with the words that matched, and why each hit has its place.
import { call } from "../api.js";
import { html, useEffect, useLoaded, useState, useTitle } from "../dom.js";
import { escapeId, leads } from "../refs.js";
import { href, route, settle } from "../router.js";
import { may, me } from "../state.js";
import { Marks, When, brief, glance } from "../text.js";
import { Why } from "../ui/why.js";
import { Badge, Empty, Field, Loaded, ObjectActions, Tabs } from "../ui/parts.js";

const REALMS = [["", "Everything"], ["conv", "Conversations"], ["mem", "Memories"], ["doc", "Documents"], ["cnv", "Boards"]];
const readable = (realm) => may(`${realm}:read`);
const ROLES = ["user", "assistant", "summary", "note", "attachment"];

/** A day as the moment at which it begins where the person is; what is no day is left to the server. */
const midnight = (day) => {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(day) ? new Date(`${day}T00:00`) : NaN;
  return Number.isNaN(Number(at)) ? day : at.toISOString();
};

/** How each realm is asked, and what is made of its hits. */
const ASK = {
  conv: async (asked, limit, stop) => {
    const given = { query: asked.q, roles: asked.role ? [asked.role] : null, conversation: asked.conversation, since: midnight(asked.since), until: midnight(asked.until), limit, explain: true };
    const found = await call("conv", "search", given, { signal: stop });
    const titles = await titlesOf(found.hits, stop);
    return { ...found, hits: found.hits.map((hit) => ({ ...hit, title: titles[hit.conversation] || hit.conversation, place: hit.author || hit.role })) };
  },
  mem: async (asked, limit, stop) => {
    const found = await call("mem", "search", { query: asked.q, limit, explain: true }, { signal: stop });
    return { ...found, hits: found.memories.map((each) => ({ ...each, text: each.memory, title: each.kind, at: each.touched, place: each.layer })) };
  },
  doc: async (asked, limit, stop) => {
    const found = await call("doc", "search", { query: asked.q, limit, explain: true }, { signal: stop });
    return { ...found, hits: found.chunks.map((each) => ({ ...each, title: each.title || each.source, place: each.headings.join(" › ") })) };
  },
  cnv: async (asked, limit, stop) => {
    const found = await call("cnv", "search", { query: asked.q, limit }, { signal: stop });
    return { ...found, hits: found.hits.map((each) => ({ ...each, ref: each.board.ref, key: each.ref, title: each.board.title || each.board.name, place: each.card?.note, at: each.shown?.at })) };
  },
};

/** What the conversations are called in which something was found. */
async function titlesOf(hits, stop) {
  const ids = [...new Set(hits.map((hit) => hit.conversation))];
  if (!ids.length || !may("all:read")) return {};
  const refs = ids.map((id) => `conv:conversation:${escapeId(id)}`);
  const { objects } = await call("all", "describe", { refs, size: 1 }, { signal: stop });
  return Object.fromEntries(objects.map((each, at) => [ids[at], each.title]));
}

async function searched(asked, stop) {
  const narrowed = asked.role || asked.conversation || asked.since || asked.until;
  const realms = asked.in ? [asked.in] : narrowed ? ["conv"] : ["conv", "mem", "doc", "cnv"].filter(readable);
  const limit = realms.length > 1 ? 5 : 30;
  const found = await Promise.all(realms.map(async (realm) => [realm, await ASK[realm](asked, limit, stop)]));
  return found.map(([realm, answer]) => ({ realm, ...answer }));
}

export function Search() {
  const asked = route.value.query;
  useTitle(asked.q ? `${asked.q} · Search` : "Search");
  const [text, setText] = useState(asked.q || "");
  useEffect(() => setText(asked.q || ""), [asked.q]);
  const put = (more) => settle(["search"], { ...asked, ...more });
  const send = (event) => {
    event.preventDefault();
    put({ q: text.trim() });
  };
  const tabs = REALMS.filter(([name]) => !name || readable(name)).map(([name, label]) => ({ name, label, href: href(["search"], { ...asked, in: name }) }));
  return html`<div class="column"><h1>Search</h1>
    <form role="search" class="search-form" onSubmit=${send}>
      <input type="search" autofocus=${!asked.q} dir="auto" aria-label="Search everything" placeholder="Words, or a question" value=${text} onInput=${(e) => setText(e.target.value)} />
      <button class="primary">Search</button></form>
    <${Tabs} label="Where to search" tabs=${tabs} chosen=${asked.in || ""} />
    ${["", "conv"].includes(asked.in || "") && html`<${Filters} asked=${asked} put=${put} />`}
    ${asked.q ? html`<${Results} key=${JSON.stringify([asked, me.value?.grants])} asked=${asked} />`
      : html`<${Empty} title="Search what was said, held and read">By meaning, by words and by spelling at once. Times such as “last week” count, too.</${Empty}>`}</div>`;
}

function Filters({ asked, put }) {
  const narrowed = asked.role || asked.since || asked.until || asked.conversation;
  return html`<details class="filters" open=${Boolean(narrowed)}><summary>Filters${narrowed ? html` <${Badge} tone="accent">on</${Badge}>` : ""}</summary><div class="fields">
    <${Field} label="Said by"><select value=${asked.role || ""} onChange=${(e) => put({ role: e.target.value })}><option value="">anyone</option>${ROLES.map((role) => html`<option key=${role}>${role}</option>`)}</select></${Field}>
    <${Field} label="From"><input type="date" value=${asked.since || ""} onChange=${(e) => put({ since: e.target.value })} /></${Field}>
    <${Field} label="Before"><input type="date" value=${asked.until || ""} onChange=${(e) => put({ until: e.target.value })} /></${Field}>
    <${Field} label="Conversation"><input dir="auto" value=${asked.conversation || ""} onChange=${(e) => put({ conversation: e.target.value.trim() })} /></${Field}>
    ${narrowed && html`<button type="button" onClick=${() => put({ role: "", since: "", until: "", conversation: "" })}>Clear</button>`}</div></details>`;
}

function Results({ asked }) {
  const found = useLoaded((stop) => searched(asked, stop), []);
  return html`<div aria-live="polite"><${Loaded} of=${found}>${(realms) => {
    const some = realms.filter((each) => each.hits.length);
    if (!some.length) return html`<${Empty} title="Nothing found">Try fewer or other words${asked.in || asked.role || asked.since || asked.until ? ", or fewer filters" : ""}.</${Empty}>`;
    return some.map((each) => html`<${Realm} key=${each.realm} found=${each} asked=${asked} alone=${realms.length === 1} />`);
  }}</${Loaded}></div>`;
}

function Realm({ found, asked, alone }) {
  const corrected = Object.entries(found.corrections || {});
  return html`<section class="realm"><h2>${REALMS.find(([name]) => name === found.realm)[1]}</h2>
    ${corrected.map(([word, instead]) => html`<p class="quiet">Nobody wrote <q dir="auto">${word}</q>; searched for <q dir="auto">${instead.join(", ")}</q>.</p>`)}
    ${(found.warnings || []).map((warning) => html`<p class="notice">${warning}</p>`)}
    <ol class="hits">${found.hits.map((hit) => html`<${Hit} key=${hit.key || hit.ref} hit=${hit} />`)}</ol>
    ${!alone && found.hits.length >= 5 && html`<a href=${href(["search"], { ...asked, in: found.realm })}>More of these</a>`}</section>`;
}

function Hit({ hit }) {
  return html`<li class="hit"><p class="hit-head"><a href=${leads(hit.ref)} dir="auto">${hit.title}</a>
      ${hit.place && html`<span class="quiet" dir="auto">${hit.place}</span>`}${hit.at && html`<${When} at=${hit.at} />`}
      <${ObjectActions} ref_=${hit.ref} title=${brief(hit.text)} /></p>
    <p class="hit-text"><${Marks} text=${glance(hit.text)} words=${hit.matched} /></p>
    ${hit.explain && html`<${Why} explain=${hit.explain} score=${hit.score} roles=${hit.roles} />`}</li>`;
}
