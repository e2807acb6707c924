// Where one writes: a text with files. What could not be sent stays.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../dom.js";
import { may, me } from "../state.js";
import { size } from "../text.js";
import { Icon } from "../ui/icons.js";
import { IconButton, Lacks } from "../ui/parts.js";
import { attach, draft, send as sendDraft, shown, write } from "./drafts.js";

// An answer is made of all that its person may see.
const NEEDS = ["conv:write", "conv:read", "mem:read", "doc:read", "cnv:read"];

/** Where one writes, or why one cannot. */
export function Composer(props) {
  const lacking = NEEDS.filter((grant) => !may(grant));
  if (me.value?.app) return html`<div class="composer"><p class="notice">This token is for what <bdi>${me.value.app}</bdi> recorded. It reads here, and sends nothing: answers are made of all that its user may see.</p></div>`;
  if (lacking.length) return html`<div class="composer"><${Lacks} what="send anything here" grants=${lacking} /></div>`;
  return html`<${Field} ...${props} />`;
}

/** @param {{ id: string, lane: any, agents: any }} props */
function Field({ id, lane, agents }) {
  const { text, files, lost, busy, problem } = draft(id).value;
  const [kind, setKind] = useState("followup");
  const field = useRef(null);
  const chooser = useRef(null);
  const running = Boolean(lane.state.turn);

  useEffect(() => {
    shown.add(id);
    return () => shown.delete(id);
  }, [id]);
  useLayoutEffect(() => {
    field.current.style.height = "auto";
    field.current.style.height = `${Math.min(field.current.scrollHeight + 2, 320)}px`;
  }, [text]);

  const send = async () => {
    await sendDraft(id, agents.chosen, running ? kind : "prompt");
    field.current?.focus();
  };
  const pressed = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  const pasted = (event) => {
    const found = [...(event.clipboardData?.files || [])];
    if (found.length) attach(id, [...files, ...found]);
  };

  return html`<form class="composer" onSubmit=${(event) => { event.preventDefault(); send(); }}>
    ${problem && html`<p class="notice bad" role="alert">${problem}</p>`}
    ${!lane.there && html`<p class="notice">This server does not take live turns yet, so nothing can be sent here. What was recorded can be read and searched.</p>`}
    ${files.length > 0 && html`<ul class="chips" aria-label="Files to send">${files.map((file, at) => html`<li key=${at} class="chip"><span dir="auto">${file.name}</span> <small>${size(file.size)}</small>
      <${IconButton} icon="close" label=${`Remove ${file.name}`} onClick=${() => attach(id, files.filter((each) => each !== file))} /></li>`)}</ul>`}
    ${lost.length > 0 && html`<p class="notice">Not attached any more, since the page was loaded anew: <bdi>${lost.join(", ")}</bdi>. <button type="button" class="link" onClick=${() => attach(id, files)}>Dismiss</button></p>`}
    <div class="composer-row">
      <input ref=${chooser} class="hidden" type="file" multiple tabindex="-1" aria-label="Files to attach" onChange=${(e) => { attach(id, [...files, ...e.target.files]); e.target.value = ""; }} />
      <${IconButton} icon="attach" label="Attach files" onClick=${() => chooser.current.click()} />
      <textarea ref=${field} rows="1" dir="auto" aria-label="Message" placeholder=${busy ? "Sending…" : running ? "Say more while it runs…" : "Ask, or say what is to be done…"} value=${text}
        onInput=${(e) => write(id, e.target.value)} onKeyDown=${pressed} onPaste=${pasted}></textarea>
      <button class="primary send" aria-label=${running ? (kind === "steer" ? "Steer" : "Send as follow-up") : "Send"} disabled=${busy || !text.trim() || !lane.there}><${Icon} name="send" /></button>
    </div>
    <${Chooser} agents=${agents} busy=${running || busy} />
    ${running && html`<div class="composer-running"><fieldset class="segments"><legend class="hidden">What it is, while a turn runs</legend>
      ${[["followup", "Follow-up after it"], ["steer", "Steer it now"]].map(([name, label]) => html`<label key=${name}><input type="radio" name="kind" checked=${kind === name} onChange=${() => setKind(name)} /><span>${label}</span></label>`)}</fieldset>
      <button type="button" onClick=${lane.stop}><${Icon} name="stop" /> Stop</button></div>`}
  </form>`;
}

/** Which agent answers, where there are several. While one works it is looked at, and no other is chosen. */
function Chooser({ agents, busy }) {
  if (agents.list.length < 2 && !agents.chosen) return null;
  const known = agents.list.some((each) => each.name === agents.chosen);
  return html`<label class="composer-agent"><span>Agent</span><select value=${agents.chosen} disabled=${busy} onChange=${(e) => agents.choose(e.target.value)}>
    <option value="">whichever fits</option>${agents.list.map((each) => html`<option key=${each.name} value=${each.name} title=${each.description}>${each.name}</option>`)}
    ${agents.chosen && !known ? html`<option value=${agents.chosen}>${agents.chosen}</option>` : ""}</select></label>`;
}
