// Import: the histories of other tools, with their own times.
import { upload } from "../api.js";
import { html, useTitle } from "../dom.js";
import { href } from "../router.js";
import { counted } from "../text.js";
import { Drop } from "../ui/parts.js";
import { Sending, useSending } from "../ui/sending.js";

const FROM = [
  ["Claude Code", "the .jsonl files below ~/.claude/projects, or a zip of them"],
  ["Codex, Gemini CLI", "their session files"],
  ["ChatGPT", "the zip that it exports (Settings, Data controls)"],
  ["Claude", "the zip that it exports (Settings, Privacy)"],
  ["anything else", "JSONL: one message on each line"],
];

export function Import() {
  useTitle("Import");
  const sending = useSending((file, onProgress) => upload("/v1/import", file, {}, onProgress), () => dispatchEvent(new CustomEvent("recorded")),
    (done) => `${counted(done.imported, "turn")} imported${done.unchanged ? `, ${done.unchanged} known already` : ""}`);
  return html`<div class="column"><h1>Import</h1><p class="lead">What you said elsewhere, with its own times. Importing again adds nothing.</p>
    <${Drop} label="Choose exports" hint=".zip, .json, .jsonl" accept=".zip,.json,.jsonl,.gz,.ndjson" onFiles=${sending.send} />
    <${Sending} of=${sending} />
    ${sending.files.filter((each) => each.done).map((each) => html`<${Report} key=${each.id} name=${each.file.name} done=${each.done} />`)}
    <section class="panel"><h2>From where</h2><dl class="from">${FROM.map(([name, what]) => html`<div key=${name}><dt>${name}</dt><dd>${what}</dd></div>`)}</dl></section></div>`;
}

function Report({ name, done }) {
  const skipped = done.skipped || [];
  return html`<section class="panel"><h2 dir="auto">${name}</h2>
    <p>${counted(done.imported, "turn")} imported, ${done.unchanged} known already. ${done.imported > 0 && html`<a href=${href(["chat"])}>Read them</a>`}</p>
    ${skipped.length > 0 && html`<details><summary>${counted(skipped.length, "thing")} skipped, and why</summary><div class="scroll-x" tabindex="0" role="region" aria-label="What was skipped"><table><thead><tr><th>Where</th><th>Why</th></tr></thead>
      <tbody>${skipped.map((each, at) => html`<tr key=${at}><td dir="auto">${each.where}</td><td dir="auto">${each.why}</td></tr>`)}</tbody></table></div></details>`}</section>`;
}
