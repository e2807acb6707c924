// One field to find anything and go anywhere: pages, and what a search over everything finds.
import { call } from "../api.js";
import { html, useEffect, useRef, useState } from "../dom.js";
import { kindName, kindOf, leads } from "../refs.js";
import { go, href } from "../router.js";
import { may, overlay, setTheme, teaching } from "../state.js";
import { glance } from "../text.js";
import { Dialog } from "./parts.js";
import { Icon } from "./icons.js";

const close = () => (overlay.value = "");

/** What can be done besides going to a page. */
const ACTIONS = [
  { id: "new-chat", label: "New conversation", icon: "add", run: () => go(["chat"]) },
  { id: "teach", label: "Remember something", icon: "memories", run: () => (teaching.value = {}), needs: ["mem:write", "mem:propose"] },
  { id: "theme", label: "Light or dark", icon: "settings", run: () => setTheme(dark() ? "light" : "dark") },
  { id: "keys", label: "List the keys", icon: "more", run: () => (overlay.value = "keys") },
];
const dark = () => document.documentElement.dataset.theme === "dark";

function useFound(text) {
  const [found, setFound] = useState({ text: "", hits: [] });
  useEffect(() => {
    const stop = new AbortController();
    if (text.length < 2) return undefined;
    // One does not search for every letter of a word.
    const timer = setTimeout(async () => {
      try {
        const { results } = await call("all", "search", { query: text, limit: 8 }, { signal: stop.signal });
        setFound({ text, hits: results });
      } catch {
        // nothing is found, then
      }
    }, 180);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  // What was found for other words is not what one takes with Enter.
  return found.text === text ? found.hits : [];
}

function options(pages, text, found) {
  const wanted = text.toLocaleLowerCase();
  const named = (each) => each.label.toLocaleLowerCase().includes(wanted);
  const places = pages.filter(named).map((page) => ({ id: page.name, label: page.label, kind: "page", icon: page.name, href: href([page.name]) }));
  const acts = ACTIONS.filter(named).filter((act) => !act.needs || act.needs.some(may)).map((act) => ({ ...act, kind: "action" }));
  const hits = found.map((hit) => ({ id: hit.id, label: glance(hit.title), kind: kindName(kindOf(hit.id)), icon: "search", href: leads(hit.id) }));
  const all = text ? [{ id: "search-all", label: `Search everything for “${text}”`, kind: "search", icon: "search", href: href(["search"], { q: text }) }] : [];
  return [...(wanted ? hits.slice(0, 6) : []), ...all, ...places, ...acts];
}

export function Palette({ pages }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef(null);
  const shown = options(pages, text.trim(), useFound(text.trim()));
  const chosen = Math.min(at, shown.length - 1);
  const take = (option) => {
    close();
    if (option.run) option.run();
    else location.hash = option.href;
  };
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen]);
  const pressed = (event) => {
    // The key is for the words, which are still being put together.
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setAt((chosen + step + shown.length) % shown.length);
    else if (event.key === "Enter" && shown[chosen]) take(shown[chosen]);
    else return;
    event.preventDefault();
  };
  return html`<${Dialog} title="Find or go to" onClose=${close}>
    <input class="palette-field" autofocus role="combobox" aria-expanded="true" aria-controls="palette-list" aria-label="Find or go to"
      aria-activedescendant=${shown.length ? `option-${chosen}` : undefined} placeholder="A page, a word, a question…" dir="auto" value=${text}
      onInput=${(event) => { setText(event.target.value); setAt(0); }} onKeyDown=${pressed} />
    <ul id="palette-list" class="palette" role="listbox" aria-label="What is found" ref=${list}>${shown.map(
      (option, number) => html`<li key=${option.id} id=${`option-${number}`} role="option" aria-selected=${number === chosen} onClick=${() => take(option)} onMouseMove=${() => setAt(number)}>
        <${Icon} name=${option.icon} /><span dir="auto">${option.label}</span><span class="kind">${option.kind}</span></li>`,
    )}</ul>
  </${Dialog}>`;
}
