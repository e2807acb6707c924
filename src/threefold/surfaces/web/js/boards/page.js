// Boards: which there are, and one of them.
import { call } from "../api.js";
import { html, useState, useTitle } from "../dom.js";
import { go, href, route } from "../router.js";
import { attempt, mayArrange } from "../state.js";
import { When, counted } from "../text.js";
import { Badge, Dialog, Empty, Field, Loaded, More, ObjectActions } from "../ui/parts.js";
import { usePaged } from "../ui/paging.js";
import { BoardView } from "./board.js";

export function Boards() {
  const name = route.value.parts[0];
  return name ? html`<${BoardView} key=${name} name=${name} />` : html`<${Shelf} />`;
}

function Shelf() {
  useTitle("Boards");
  const [archived, setArchived] = useState(false);
  const [making, setMaking] = useState(false);
  const list = usePaged("boards", 40, (part, stop) => call("cnv", "list", { ...part, archived }, { signal: stop }), [archived]);
  return html`<div class="column"><div class="page-head"><h1>Boards</h1>${mayArrange("cnv") && html`<button type="button" class="primary" onClick=${() => setMaking(true)}>New board</button>`}</div>
    <label class="check"><input type="checkbox" checked=${archived} onChange=${() => setArchived(!archived)} /> with archived ones</label>
    <${Loaded} of=${list}>${({ boards, next }) => boards.length
      ? html`<ul class="rows">${boards.map((board) => html`<li key=${board.name}><a class="row-main" href=${href(["boards", board.name])} dir="auto">${board.title || board.name}</a>
          <span class="quiet row-about">${counted(board.cards, "card")}${board.suggested ? html` · <${Badge} tone="accent">${board.suggested} suggested</${Badge}>` : ""}${board.archived ? html` · <${Badge}>archived</${Badge}>` : ""} · <${When} at=${board.updated} /></span>
          <${ObjectActions} ref_=${board.ref} title=${board.title} remember=${false} /></li>`)}</ul><${More} next=${next} busy=${list.busy} onMore=${list.more} />`
      : html`<${Empty} title="No board yet">Make one, or pin anything you see: what was said, a memory, a passage of a document.</${Empty}>`}</${Loaded}>
    ${making && html`<${Making} onClose=${() => setMaking(false)} />`}</div>`;
}

function Making({ onClose }) {
  const [title, setTitle] = useState("");
  const make = async (event) => {
    event.preventDefault();
    const made = await attempt(() => call("cnv", "upsert", { board: title.trim(), title: title.trim() }));
    if (made) {
      onClose();
      go(["boards", made.name]);
    }
  };
  return html`<${Dialog} title="New board" onClose=${onClose}><form onSubmit=${make}>
    <${Field} label="Name" hint="Its address, too; what it is called can be changed later."><input autofocus required maxlength="200" dir="auto" value=${title} onInput=${(e) => setTitle(e.target.value)} /></${Field}>
    <div class="actions"><button type="button" onClick=${onClose}>Cancel</button><button class="primary">Make it</button></div></form></${Dialog}>`;
}
