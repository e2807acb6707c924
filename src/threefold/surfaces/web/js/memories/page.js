// Memories: what is held, what waits for a word, what every turn begins with, what would be tidied up.
import { html, useTitle } from "../dom.js";
import { href, route } from "../router.js";
import { may, mayArrange, me, proposals, teaching } from "../state.js";
import { Lacks, Tabs } from "../ui/parts.js";
import { Detail } from "./detail.js";
import { Hotset } from "./hotset.js";
import { List } from "./list.js";
import { Proposals } from "./proposals.js";
import { Reconcile } from "./reconcile.js";

const VIEWS = { list: List, proposals: Proposals, hotset: Hotset, reconcile: Reconcile };
const NAMES = { list: "All", proposals: "Proposals", hotset: "Hotset", reconcile: "Tidy up" };

function NotTidying() {
  if (me.value.agent) return html`<p class="notice">Only the person tidies up, not an agent.</p>`;
  return html`<${Lacks} what="tidy up" grants=${["mem:write"]} />`;
}

export function Memories() {
  useTitle("Memories");
  const { parts, query } = route.value;
  const view = VIEWS[query.view] ? query.view : "list";
  const View = VIEWS[view];
  const tidies = mayArrange("mem");
  const tabs = Object.keys(VIEWS).filter((name) => tidies || name !== "reconcile").map((name) => ({
    name, label: NAMES[name], href: href(["memories"], { view: name === "list" ? "" : name }), badge: name === "proposals" ? proposals.value : 0,
  }));
  if (parts[0]) return html`<div class="column"><${Detail} key=${parts[0]} id=${parts[0]} /></div>`;
  return html`<div class="column"><div class="page-head"><h1>Memories</h1>
      ${(may("mem:write") || may("mem:propose")) && html`<button type="button" class="primary" onClick=${() => (teaching.value = {})}>${may("mem:write") ? "Remember" : "Propose"} something</button>`}</div>
    <${Tabs} label="Views of memories" tabs=${tabs} chosen=${view} />
    ${view === "reconcile" && !tidies ? html`<${NotTidying} />` : html`<${View} key=${view} />`}</div>`;
}
