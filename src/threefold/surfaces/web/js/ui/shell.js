// The frame around every page: where one can go, what is open above it, what is told.
import { refused } from "../api.js";
import { html, useEffect } from "../dom.js";
import { go, href, route } from "../router.js";
import { countProposals, learnMe, may, me, overlay, pinning, proposals, teaching } from "../state.js";
import { Chat } from "../chat/page.js";
import { Boards } from "../boards/page.js";
import { Memories } from "../memories/page.js";
import { Context } from "../pages/context.js";
import { Documents } from "../pages/documents.js";
import { Import } from "../pages/import.js";
import { ObjectPage } from "../pages/object.js";
import { Search } from "../pages/search.js";
import { Settings } from "../pages/settings.js";
import { Icon } from "./icons.js";
import { Keys } from "./keys.js";
import { Palette } from "./palette.js";
import { Lacks } from "./parts.js";
import { PinDialog } from "./pinning.js";
import { TeachDialog } from "./teaching.js";
import { Toasts } from "./toasts.js";

/** The pages: name, word, key after "g", what draws it, the grants without which nothing of it could be shown. */
export const PAGES = [
  { name: "chat", label: "Chat", key: "c", page: Chat, needs: ["conv:read"] },
  { name: "search", label: "Search", key: "s", page: Search, needs: [] },
  { name: "memories", label: "Memories", key: "m", page: Memories, needs: ["mem:read"] },
  { name: "boards", label: "Boards", key: "b", page: Boards, needs: ["cnv:read"] },
  { name: "documents", label: "Documents", key: "d", page: Documents, needs: ["doc:read"] },
  { name: "context", label: "Context", key: "x", page: Context, needs: ["all:read", "conv:read", "mem:read", "doc:read", "cnv:read"] },
  { name: "import", label: "Import", key: "i", page: Import, needs: ["conv:write"] },
  { name: "settings", label: "Settings", key: "t", page: Settings, needs: [] },
];
const lacking = (page) => page.needs.filter((grant) => !may(grant));
const AT_HAND = ["chat", "search", "memories", "boards"];

const writing = (target) => target.closest?.("input, textarea, select, [contenteditable]");

/** Keys that work everywhere but where one writes. */
function useKeys() {
  useEffect(() => {
    let after = "";
    const pressed = (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        overlay.value = "palette";
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || writing(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      const page = after === "g" && PAGES.find((each) => each.key === event.key);
      after = event.key;
      if (page) go([page.name]);
      else if (event.key === "/") overlay.value = "palette";
      else if (event.key === "?") overlay.value = "keys";
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

export function Shell() {
  useKeys();
  useEffect(() => {
    learnMe();
    countProposals();
  }, []);
  const { page } = route.value;
  const shown = PAGES.find((each) => each.name === page);
  const Page = page === "object" ? ObjectPage : (shown || PAGES[0]).page;
  const open = PAGES.filter((each) => !lacking(each).length);
  const missing = page === "object" ? [] : lacking(shown || PAGES[0]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to the content</a>
    <div class="shell">
      <${Rail} page=${page} pages=${open} />
      <main id="main" tabindex="-1" class=${`page page-${page}`}>
        ${refused.value && page !== "settings" && html`<div class="notice bad" role="alert"><p>This server wants a token.</p><a class="button" href=${href(["settings"])}>Paste one</a></div>`}
        ${missing.length ? html`<div class="column"><h1>${(shown || PAGES[0]).label}</h1><${Lacks} what="open this page" grants=${missing} /></div>` : html`<${Page} key=${page} />`}
      </main>
    </div>
    ${overlay.value === "palette" && html`<${Palette} pages=${open} />`}
    ${overlay.value === "keys" && html`<${Keys} pages=${open} />`}
    ${pinning.value && html`<${PinDialog} what=${pinning.value} />`}
    ${teaching.value && html`<${TeachDialog} first=${teaching.value} />`}
    <${Toasts} />`;
}

/** As whom one is here, in a line that leads to what one may do. */
function Who() {
  if (!me.value) return null;
  const { user, agent } = me.value;
  return html`<a class="who" href=${href(["settings"])} title=${user}><${Icon} name="person" /><bdi>${user}</bdi>${agent && html`<span class="quiet">as <bdi>${agent}</bdi></span>`}</a>`;
}

function Rail({ page, pages }) {
  const link = ({ name, label }) => html`<li key=${name} class=${AT_HAND.includes(name) ? "" : "further"}>
    <a href=${href([name])} aria-current=${page === name ? "page" : undefined}><${Icon} name=${name} /><span>${label}</span>
      ${name === "memories" && proposals.value ? html`<span class="badge accent" aria-label=${`${proposals.value} proposals`}>${proposals.value}</span>` : ""}</a></li>`;
  return html`<header class="rail">
    <a class="brand" href=${href(["chat"])} aria-label="Threefold"><img src="icon.svg" alt="" width="28" height="28" /><span>Threefold</span></a>
    <button type="button" class="find" onClick=${() => (overlay.value = "palette")}><${Icon} name="search" /><span>Find or go to…</span><kbd aria-hidden="true">/</kbd></button>
    <nav aria-label="Pages"><ul>${pages.map(link)}
      <li class="rest"><button type="button" onClick=${() => (overlay.value = "palette")}><${Icon} name="more" /><span>More</span></button></li></ul></nav>
    <${Who} />
    <button type="button" class="bare keys" onClick=${() => (overlay.value = "keys")}>Keys <kbd>?</kbd></button>
  </header>`;
}
