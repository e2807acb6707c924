// Memories: what is held, what waits for a word, what every turn begins with, what would be tidied up.
import { html, useTitle } from "../dom.js";
import { href, route } from "../router.js";
import { proposals, teaching } from "../state.js";
import { Tabs } from "../ui/parts.js";
import { Detail } from "./detail.js";
import { Hotset } from "./hotset.js";
import { List } from "./list.js";
import { Proposals } from "./proposals.js";
import { Reconcile } from "./reconcile.js";

const VIEWS = { list: List, proposals: Proposals, hotset: Hotset, reconcile: Reconcile };
const NAMES = { list: "All", proposals: "Proposals", hotset: "Hotset", reconcile: "Tidy up" };

export function Memories() {
  useTitle("Memories");
  const { parts, query } = route.value;
  const view = VIEWS[query.view] ? query.view : "list";
  const View = VIEWS[view];
  const tabs = Object.keys(VIEWS).map((name) => ({
    name, label: NAMES[name], href: href(["memories"], { view: name === "list" ? "" : name }), badge: name === "proposals" ? proposals.value : 0,
  }));
  if (parts[0]) return html`<div class="column"><${Detail} key=${parts[0]} id=${parts[0]} /></div>`;
  return html`<div class="column"><div class="page-head"><h1>Memories</h1>
      <button type="button" class="primary" onClick=${() => (teaching.value = {})}>Remember something</button></div>
    <${Tabs} label="Views of memories" tabs=${tabs} chosen=${view} />
    <${View} key=${view} /></div>`;
}
