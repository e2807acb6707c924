// A computed context: how much of the budget it takes, what is in it and why, what was left out and why.
import { html, useState } from "../dom.js";
import { leads } from "../refs.js";
import { counted, number, percent } from "../text.js";
import { Badge } from "./parts.js";

const SECTIONS = {
  working: "At hand", session: "This session", longterm: "About the user", organizational: "About the organization",
  global: "For everyone", thread: "The conversation so far", board: "From boards", document: "From documents",
  turn: "From earlier conversations", extra: "From another engine",
};
const WHY = { budget: "no room", irrelevant: "not to the point", duplicate: "said already" };
const SHOWN = 20;

/** A share as a bar; the number beside it says the same. */
export function Bar({ value, of, label }) {
  const share = of ? Math.min(1, value / of) : 0;
  return html`<span class="bar"><span class="bar-track" aria-hidden="true"><span class="bar-fill" style=${{ width: `${share * 100}%` }}></span></span><span class="bar-label">${label}</span></span>`;
}

function sections(context) {
  const named = Object.keys(SECTIONS).map((name) => {
    const entries = context.entries.filter((entry) => entry.section === name);
    return { name, title: SECTIONS[name], entries, tokens: total(entries) };
  });
  const thread = named.find((each) => each.name === "thread");
  if (context.thread) {
    const { messages = [], summary = "", summary_tokens: spent = 0, left_out: older = 0, tokens = null } = context.thread;
    thread.entries = messages.map((said, at) => ({ ...said, label: said.label || `c${at + 1}`, because: said.role }));
    thread.summary = summary;
    thread.older = older;
    thread.tokens = tokens ?? total(thread.entries) + spent;
  }
  return named.filter((each) => each.entries.length || each.summary);
}

const total = (entries) => entries.reduce((sum, entry) => sum + (entry.tokens || 0), 0);

export function ContextView({ context }) {
  const parts = sections(context);
  const most = Math.max(1, ...parts.map((part) => part.tokens || part.entries.length));
  return html`<div class="context-view">
    <p class="context-sum"><strong>${number(context.tokens)}</strong> of ${counted(context.budget, "token")}
      <${Bar} value=${context.tokens} of=${context.budget} label=${percent(context.tokens / context.budget)} />
      ${context.engine && context.engine !== "default" && html`<${Badge}>${context.engine}</${Badge}>`}</p>
    ${context.warnings.map((warning) => html`<p class="notice" dir="auto">${warning}</p>`)}
    ${!parts.length && html`<p class="quiet">Nothing that is kept was to the point.</p>`}
    ${parts.map((part) => html`<${Section} key=${part.name} part=${part} most=${most} />`)}
    ${context.dropped.length > 0 && html`<${Dropped} dropped=${context.dropped} />`}
  </div>`;
}

function Section({ part, most }) {
  const size = part.tokens || part.entries.length;
  return html`<details class="context-section" open><summary><h3>${part.title}</h3>
      <${Bar} value=${size} of=${most} label=${part.tokens ? counted(part.tokens, "token") : counted(part.entries.length, "entry", "entries")} /></summary>
    ${part.summary && html`<blockquote dir="auto">${part.summary}</blockquote>`}
    ${part.older > 0 && html`<p class="quiet">${counted(part.older, "older message")} found no room.</p>`}
    <ol class="context-entries">${part.entries.map((entry) => html`<li key=${entry.ref + entry.label}>
      <span class="cite">${entry.label}</span>
      <div><blockquote dir="auto">${entry.gone ? html`<em>${entry.gone}</em>` : entry.text}</blockquote>
        <p class="quiet"><a href=${leads(entry.ref)}>Open the source</a>${entry.because && html` · <span>${entry.because}</span>`}${entry.score !== null && entry.score !== undefined ? html` · likelihood ${percent(entry.score)}` : ""}${entry.whole === false ? " · in part" : ""}${entry.tokens ? html` · ${counted(entry.tokens, "token")}` : ""}</p></div></li>`)}</ol>
  </details>`;
}

function Dropped({ dropped }) {
  const [all, setAll] = useState(false);
  const shown = all ? dropped : dropped.slice(0, SHOWN);
  return html`<details class="context-section"><summary><h3>Left out</h3><span class="bar-label">${counted(dropped.length, "piece")}</span></summary>
    <div class="scroll-x" tabindex="0" role="region" aria-label="What was left out"><table><thead><tr><th>What</th><th>Why</th><th class="num">Tokens</th><th class="num">Likelihood</th></tr></thead>
    <tbody>${shown.map((each) => html`<tr key=${each.ref + each.why}><td><a href=${leads(each.ref)} dir="auto">${each.text || each.ref}</a></td><td>${WHY[each.why] || each.why}</td>
      <td class="num">${each.tokens ?? ""}</td><td class="num">${each.score === null || each.score === undefined ? "" : percent(each.score)}</td></tr>`)}</tbody></table></div>
    ${!all && dropped.length > SHOWN && html`<button type="button" class="link" onClick=${() => setAll(true)}>All ${dropped.length}</button>`}
  </details>`;
}
