import { call } from "../api.js";
import { html, useLoaded, useState } from "../dom.js";
import { href } from "../router.js";
import { attempt } from "../state.js";
import { percent } from "../text.js";
import { Badge, Empty, Loaded } from "../ui/parts.js";
import { useChanges } from "./parts.js";

const DOES = {
  merge: "These say the same. One stays, with the tags and evidence of both.",
  refine: "One says more. The other gives way to it.",
  supersede: "They contradict each other. The newer one stands in the older one's place.",
  weaken: "One speaks against the other, which is held less firmly.",
  retire: "Stale: untouched for long, of little salience, and no person stands behind it.",
};

async function proposed(stop) {
  const proposal = await call("mem", "reconcile", {}, { signal: stop });
  const ids = [...new Set(proposal.steps.flatMap((step) => [step.give, step.keep]).filter(Boolean))];
  const found = await Promise.all(ids.map((id) => call("mem", "get", { id }, { signal: stop }).catch(() => null)));
  return { ...proposal, memories: Object.fromEntries(ids.map((id, at) => [id, found[at]])) };
}

/** What would be merged, superseded, retired: seen first, then done at once, and taken back as one. */
export function Reconcile() {
  const proposal = useLoaded(proposed, []);
  const [applied, setApplied] = useState(null);
  useChanges(proposal.again);
  const apply = async () => {
    const done = await attempt(() => call("mem", "reconcile", { apply: true, id: proposal.value.id }), "Done, all of it");
    if (done) setApplied(done);
    proposal.again();
    dispatchEvent(new CustomEvent("memories"));
  };
  const undo = async () => {
    if (await attempt(() => call("mem", "undo_reconcile", { id: applied.id }), "Taken back")) setApplied(null);
    dispatchEvent(new CustomEvent("memories"));
  };
  return html`<p class="lead">Found by rules over the texts. Nothing changes before you say so; all of it can be taken back.</p>
    ${applied && html`<p class="notice">Done: ${applied.steps.length} ${applied.steps.length === 1 ? "step" : "steps"}. <button type="button" onClick=${undo}>Take it back</button></p>`}
    <${Loaded} of=${proposal}>${(found) => html`${found.warnings.map((warning) => html`<p class="notice">${warning}</p>`)}
      ${found.steps.length ? html`<ol class="memories">${found.steps.map((step) => html`<${Step} key=${step.give + step.keep} step=${step} memories=${found.memories} />`)}</ol>
        <div class="actions"><button type="button" class="primary" onClick=${apply}>Do ${found.steps.length === 1 ? "it" : `all ${found.steps.length}`}</button></div>`
        : html`<${Empty} title="Nothing to tidy up">No two memories say the same or contradict each other, and none is stale.</${Empty}>`}`}</${Loaded}>`;
}

function Step({ step, memories }) {
  const line = (id, role) => html`<p class=${role} dir="auto">${role === "give" ? html`<del>${memories[id]?.memory ?? id}</del>` : html`<strong>${memories[id]?.memory ?? id}</strong>`} <a href=${href(["memories", id])}>Open</a></p>`;
  return html`<li class="memory"><p><${Badge} tone="accent">${step.act}</${Badge}> <span class="quiet">${step.why}${["merge", "refine"].includes(step.act) && ` · ${percent(step.likelihood)} likely`}</span></p>
    ${step.keep && line(step.keep, "keep")}${line(step.give, "give")}<p class="quiet">${DOES[step.act]}</p></li>`;
}
