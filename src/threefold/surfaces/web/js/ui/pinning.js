// "Pin to board", from anywhere.
import { call } from "../api.js";
import { html, useLoaded, useState } from "../dom.js";
import { go } from "../router.js";
import { attempt, pinning, tell } from "../state.js";
import { Dialog, Field, Loaded } from "./parts.js";

const close = () => (pinning.value = null);

export function PinDialog({ what }) {
  const boards = useLoaded((stop) => call("cnv", "list", { limit: 50 }, { signal: stop }).then((page) => page.boards), []);
  return html`<${Dialog} title="Pin to board" onClose=${close}>
    <p class="quiet" dir="auto">${what.title || what.ref}</p>
    <${Loaded} of=${boards}>${(found) => html`<${PinForm} what=${what} boards=${found} />`}</${Loaded}>
  </${Dialog}>`;
}

function PinForm({ what, boards }) {
  const [board, setBoard] = useState(boards[0]?.name ?? "");
  const [title, setTitle] = useState(boards.length ? "" : "First board");
  const [note, setNote] = useState("");
  const pin = async (event) => {
    event.preventDefault();
    const name = board || title.trim();
    const done = await attempt(async () => {
      await call("cnv", "pin", { board: name, ref: what.ref, note, source: what.source });
    });
    if (!done) return;
    tell("Pinned", "done", { label: "Open the board", run: () => go(["boards", name]) });
    close();
  };
  return html`<form onSubmit=${pin}>
    <${Field} label="Board"><select autofocus value=${board} onChange=${(e) => setBoard(e.target.value)}>
      ${boards.map((each) => html`<option key=${each.name} value=${each.name}>${each.title || each.name}</option>`)}
      <option value="">A new board…</option></select></${Field}>
    ${!board && html`<${Field} label="Name of the new board"><input required maxlength="200" dir="auto" value=${title} onInput=${(e) => setTitle(e.target.value)} /></${Field}>`}
    <${Field} label="Note" hint="Why it is there; may be empty"><input maxlength="4000" dir="auto" value=${note} onInput=${(e) => setNote(e.target.value)} /></${Field}>
    <div class="actions"><button type="button" onClick=${close}>Cancel</button><button class="primary">Pin</button></div>
  </form>`;
}
