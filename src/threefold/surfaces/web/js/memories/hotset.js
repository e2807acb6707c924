import { call } from "../api.js";
import { html, useLoaded, useState } from "../dom.js";
import { Bar } from "../ui/contextview.js";
import { percent } from "../text.js";
import { Empty, Loaded } from "../ui/parts.js";
import { MemoryCard, useChanges } from "./parts.js";

const because = (why) =>
  why.pinned ? "pinned" : Object.entries(why).filter(([name, value]) => typeof value === "number" && name !== "weight").map(([name, value]) => `${name} ${percent(value)}`).join(", ");

/** What every turn begins with, as the agent sees it, and how each got in. */
export function Hotset() {
  const [goal, setGoal] = useState("");
  const [asked, setAsked] = useState("");
  const list = useLoaded((stop) => call("mem", "hotset", { goal: asked }, { signal: stop }), [asked]);
  useChanges(list.again);
  return html`<p class="lead">At most eight: pinned ones first, then by salience. With a goal, such as “book the hotel”, what answers it rises.</p>
    <form class="search-form" onSubmit=${(e) => { e.preventDefault(); setAsked(goal.trim()); }}><input aria-label="Goal" placeholder="For which goal?" dir="auto" value=${goal} onInput=${(e) => setGoal(e.target.value)} /><button>Look</button></form>
    <${Loaded} of=${list}>${({ memories }) => memories.length
      ? html`<ol class="memories">${memories.map((memory) => html`<${MemoryCard} key=${memory.id} memory=${memory}><p class="quiet in-because"><${Bar} value=${memory.because.weight ?? memory.because.salience ?? 1} of=${1} label=${because(memory.because)} /></p></${MemoryCard}>`)}</ol>`
      : html`<${Empty} title="Turns begin with nothing yet">What you remember is here by itself, as far as there is room.</${Empty}>`}</${Loaded}>`;
}
