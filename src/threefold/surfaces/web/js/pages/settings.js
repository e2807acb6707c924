// Settings: the token, what it may do, how it looks, what agents may remember, taking all along and back, forgetting.
import { archive, call, services, setToken, token, upload } from "../api.js";
import { html, useLoaded, useState, useTitle } from "../dom.js";
import { attempt, countProposals, learnMe, may, mayArrange, me, setTheme, theme } from "../state.js";
import { counted } from "../text.js";
import { Drop, Field, Lacks, Loaded, save } from "../ui/parts.js";
import { Sending, useSending } from "../ui/sending.js";
import { Forget } from "./forget.js";

export function Settings() {
  useTitle("Settings");
  const [held, setHeld] = useState(token());
  const take = (value) => {
    setToken(value);
    setHeld(value);
    learnMe();
    countProposals();
  };
  return html`<div class="column"><h1>Settings</h1>
    <section class="panel"><h2>Access</h2><${Token} held=${held} onChange=${take} /><${Who} /><${Mine} key=${held} /></section>
    <section class="panel"><h2>Looks</h2><${Theme} /></section>
    ${may("mem:read") && html`<section class="panel"><h2>What agents may remember</h2><${Policy} key=${held} /></section>`}
    <section class="panel"><h2>Take everything along</h2><${Export} /><${Restore} /></section>
    <section class="panel"><h2>Forget</h2><${Forget} /></section></div>`;
}

function Token({ held, onChange }) {
  const [text, setText] = useState("");
  return html`<form onSubmit=${(e) => { e.preventDefault(); onChange(text.trim()); setText(""); }}>
    <${Field} label="Token" hint="Made with: threefold tokens create. It is kept until this window is closed; on this machine alone a server needs none."><input type="password" autocomplete="off" spellcheck="false" placeholder=${held ? "one is set" : "tf_…"} value=${text} onInput=${(e) => setText(e.target.value)} /></${Field}>
    <div class="actions start"><button class="primary" disabled=${!text.trim()}>Use it</button>${held && html`<button type="button" onClick=${() => onChange("")}>Forget the token</button>`}</div></form>`;
}

/** As whom one is here, and what was granted. */
function Who() {
  if (!me.value) return null;
  const { user, tenant, app, agent, grants } = me.value;
  return html`<p>You are <strong><bdi>${user}</bdi></strong>${tenant !== "default" && html` of <bdi>${tenant}</bdi>`}${agent && html`, as the agent <bdi>${agent}</bdi>, which suggests`}${app && html`, and see what <bdi>${app}</bdi> recorded`}. ${
    grants ? html`You were granted ${grants.length ? grants.map((grant, at) => html`${at ? ", " : ""}<code>${grant}</code>`) : "nothing"}.` : "You may do everything."}</p>`;
}

/** Which services this person may use here. */
function Mine() {
  const found = useLoaded(() => services(), []);
  return html`<${Loaded} of=${found}>${(told) => html`<p class="quiet">What you can use here:</p><dl class="from">${(told.services || told).map((each) => html`<div key=${each.namespace}><dt>${each.namespace}</dt><dd>${each.line}</dd></div>`)}</dl>`}</${Loaded}>`;
}

function Theme() {
  return html`<fieldset class="segments"><legend class="hidden">Theme</legend>${[["auto", "As the system"], ["light", "Light"], ["dark", "Dark"]].map(([name, label]) => html`<label key=${name}><input type="radio" name="theme" checked=${theme.value === name} onChange=${() => setTheme(name)} /><span>${label}</span></label>`)}</fieldset>`;
}

const RULES = [["off", "Nothing"], ["propose", "Propose; I decide"], ["auto", "Hold preferences at once, propose the rest"]];

function Policy() {
  const policy = useLoaded((stop) => call("mem", "policy", {}, { signal: stop }), []);
  const choose = async (rule) => {
    const made = await attempt(() => call("mem", "allow", { rule, kinds: rule === "auto" ? ["preference"] : null }), "Set");
    if (made) policy.put(() => made);
  };
  const mine = mayArrange("mem");
  return html`<${Loaded} of=${policy}>${(found) => html`<fieldset class="segments" disabled=${!mine}><legend class="hidden">What agents may do with memory</legend>${RULES.map(([name, label]) => html`<label key=${name}><input type="radio" name="policy" checked=${found.rule === name} onChange=${() => choose(name)} /><span>${label}</span></label>`)}</fieldset>${!mine && (me.value.agent ? html`<p class="notice">Only the person chooses this, not an agent.</p>` : html`<${Lacks} what="change this" grants=${["mem:write"]} />`)}`}</${Loaded}>`;
}

function Export() {
  const [busy, setBusy] = useState(false);
  const lacking = ["conv:read", "mem:read", "doc:read", "cnv:read"].filter((grant) => !may(grant));
  if (lacking.length) return html`<${Lacks} what="export everything" grants=${lacking} />`;
  const load = async () => {
    setBusy(true);
    await attempt(async () => save(await archive(), `threefold-${new Date().toISOString().slice(0, 10)}.zip`));
    setBusy(false);
  };
  return html`<p>All that is yours, with files and history, as one archive. <code>threefold restore</code> puts it into any store.</p><div class="actions start"><button type="button" disabled=${busy} onClick=${load}>${busy ? "Packing…" : "Export"}</button></div>`;
}

/** An export, here or of another store, taken in as this person's. */
function Restore() {
  const [foreign, setForeign] = useState(false);
  const lacking = ["conv:write", "mem:write", "doc:write", "cnv:write"].filter((grant) => !may(grant));
  const sending = useSending((file, onProgress) => upload("/v1/restore", file, foreign ? { foreign: "1" } : {}, onProgress), () => dispatchEvent(new CustomEvent("recorded")),
    (done) => `${counted(done.created + done.replaced, "record")} restored${done.unchanged ? `, ${done.unchanged} here already` : ""}`);
  if (me.value?.agent || me.value?.app) return html`<p class="notice">Only a person's own token, of no agent or app, restores an export.</p>`;
  if (lacking.length) return html`<${Lacks} what="restore an export" grants=${lacking} />`;
  return html`<h3>Restore an export</h3><p>What is here already stays as it is; restoring again adds nothing.</p>
    <label class="check"><input type="checkbox" checked=${foreign} onChange=${(e) => setForeign(e.target.checked)} /> Take it in as mine, also where it is an export of another user</label>
    <${Drop} label="Choose an archive" hint=".zip" accept=".zip" multiple=${false} onFiles=${sending.send} />
    <${Sending} of=${sending} />`;
}
