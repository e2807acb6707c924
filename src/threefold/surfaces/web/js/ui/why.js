// Why a hit has its place: its rank and score in each list, what they came to, and what the second stage looked at.
import { html, useState } from "../dom.js";
import { Bar } from "./contextview.js";

const LISTS = { lexical: "by words", semantic: "by meaning", trigram: "by spelling" };
const digits = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString());

export function Why({ explain, score, roles }) {
  const [open, setOpen] = useState(false);
  return html`<details class="why" onToggle=${(event) => setOpen(event.currentTarget.open)}><summary>Why this hit</summary>${open && html`<${Steps} explain=${explain} score=${score} roles=${roles} />`}</details>`;
}

function Steps({ explain, score, roles = [] }) {
  const lists = Object.entries(explain.lists || {});
  const rows = [
    ["fused by reciprocal rank", explain.fused], ["after the second stage", explain.learned], ["lift by recency", explain.recency_lift], ["score", score],
  ].filter(([, value]) => typeof value === "number");
  return html`<div class="why-tables">
    <table><caption class="hidden">In each list</caption><thead><tr><th>List</th><th class="num">Rank</th><th class="num">Score</th></tr></thead>
      <tbody>${lists.map(([name, found]) => html`<tr key=${name}><td>${LISTS[name] || name}</td><td class="num">${found.rank}</td><td class="num">${digits(found.score)}</td></tr>`)}
      ${!lists.length && html`<tr><td colspan="3">in none: it came with its neighbours</td></tr>`}</tbody></table>
    <table><caption class="hidden">What they came to</caption><tbody>${rows.map(([label, value]) => html`<tr key=${label}><th scope="row">${label}</th><td class="num">${digits(value)}</td></tr>`)}
      ${roles.length > 0 && html`<tr><th scope="row">matched in</th><td>${roles.join(", ")}</td></tr>`}</tbody></table>
    ${explain.features && html`<${Features} features=${explain.features} />`}</div>`;
}

/** The features that are shares, largest first: what the second stage looked at. */
function Features({ features }) {
  const shown = Object.entries(features).filter(([, value]) => value > 0 && value <= 1).sort((a, b) => b[1] - a[1]).slice(0, 10);
  return html`<details><summary>What the second stage looked at</summary><table><tbody>${shown.map(
    ([name, value]) => html`<tr key=${name}><th scope="row">${name.replaceAll("_", " ")}</th><td><${Bar} value=${value} of=${1} label=${digits(value)} /></td></tr>`,
  )}</tbody></table></details>`;
}
