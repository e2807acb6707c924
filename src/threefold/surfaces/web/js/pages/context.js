// What an agent would see for a request, computed now.
import { call } from "../api.js";
import { html, useEffect, useLoaded, useState, useTitle } from "../dom.js";
import { route, settle } from "../router.js";
import { ContextView } from "../ui/contextview.js";
import { Empty, Field, Loaded } from "../ui/parts.js";

const compute = async ({ goal, thread, budget }, stop) => {
  const found = await call("all", "context", { goal, thread, budget: Number(budget), explain: true }, { signal: stop });
  const refs = [...new Set(found.left_out.map((each) => each.ref))].slice(0, 100);
  const shown = refs.length ? (await call("all", "describe", { refs, size: 100 }, { signal: stop })).objects : [];
  const titles = Object.fromEntries(shown.map((each) => [each.ref, each.title]));
  return { ...found, tokens: found.estimated_tokens, dropped: found.left_out.map((each) => ({ ...each, text: titles[each.ref] })) };
};

export function Context() {
  useTitle("Context");
  const { goal = "", thread = "", budget = "4000" } = route.value.query;
  const [form, setForm] = useState({ goal, thread, budget });
  useEffect(() => setForm({ goal, thread, budget }), [goal, thread, budget]);
  const known = useLoaded((stop) => call("conv", "list", { limit: 50 }, { signal: stop }), []);
  const set = (name) => (event) => setForm({ ...form, [name]: event.target.value });
  const send = (event) => {
    event.preventDefault();
    settle(["context"], form);
  };
  return html`<div class="column"><h1>Context</h1>
    <p class="lead">What an agent is given for a request, computed anew from everything that is kept, within a budget.</p>
    <form class="panel" onSubmit=${send}>
      <${Field} label="Goal or question"><textarea rows="2" required dir="auto" value=${form.goal} onInput=${set("goal")}></textarea></${Field}>
      <div class="fields"><${Field} label="Conversation"><input list="threads" dir="auto" value=${form.thread} onInput=${set("thread")} placeholder="none" />
        <datalist id="threads">${(known.value?.conversations || []).map((each) => html`<option key=${each.id} value=${each.id}>${each.title}</option>`)}</datalist></${Field}>
      <${Field} label="Budget in tokens"><input type="number" min="1" max="200000" required value=${form.budget} onInput=${set("budget")} /></${Field}></div>
      <div class="actions"><button class="primary">Compute</button></div></form>
    ${goal ? html`<${Computed} key=${`${goal}\n${thread}\n${budget}`} asked=${{ goal, thread, budget }} />`
      : html`<${Empty} title="Nothing asked yet">Give a goal, such as a question somebody would ask.</${Empty}>`}</div>`;
}

function Computed({ asked }) {
  const found = useLoaded((stop) => compute(asked, stop), []);
  return html`<${Loaded} of=${found}>${(context) => html`<${ContextView} context=${context} />
    <details class="context-section"><summary><h3>As the agent reads it</h3></summary><pre tabindex="0" dir="auto">${context.text}</pre></details>`}</${Loaded}>`;
}
