// What the agent was given for a recorded turn: references alone are kept, what they name is looked up now.
import { call } from "../api.js";
import { html, useLoaded } from "../dom.js";
import { ContextView } from "../ui/contextview.js";
import { Loaded } from "../ui/parts.js";

const AT_ONCE = 100;

async function described(refs, stop) {
  const parts = [];
  for (let at = 0; at < refs.length; at += AT_ONCE) parts.push(refs.slice(at, at + AT_ONCE));
  const found = await Promise.all(parts.map((part) => call("all", "describe", { refs: part, size: 400 }, { signal: stop })));
  return Object.fromEntries(found.flatMap((each) => each.objects).map((each) => [each.ref, each]));
}

/** @param {{ payload: any }} props what the event `computed_context` of a turn says */
export function Given({ payload }) {
  const given = payload.given || [];
  const dropped = payload.dropped || [];
  const refs = [...new Set([...given, ...dropped].map((each) => each.ref).concat(payload.thread || []))];
  const objects = useLoaded((stop) => described(refs, stop), [refs.join()]);
  return html`<section class="given" aria-label="What the agent was given"><${Loaded} of=${objects}>${(shown) => html`<${ContextView} context=${{
    tokens: payload.tokens, budget: payload.budget, engine: payload.engine, warnings: payload.warnings || [],
    entries: given.map((each) => ({ ...each, text: shown[each.ref]?.text || shown[each.ref]?.title || "", gone: why(shown[each.ref]) })),
    thread: payload.thread && { tokens: payload.thread_tokens, messages: payload.thread.map((ref) => ({ ref, text: shown[ref]?.text || "", gone: why(shown[ref]) })) },
    dropped: dropped.map((each) => ({ ...each, text: shown[each.ref]?.title || "" })),
  }} />`}</${Loaded}></section>`;
}

const why = (shown) => (shown && shown.standing !== "there" ? shown.why || shown.standing : "");
