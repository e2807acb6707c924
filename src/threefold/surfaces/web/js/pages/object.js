// Anything with a reference that has no page of its own: a file, an object of an app.
import { bytes, call } from "../api.js";
import { html, useEffect, useLoaded, useState, useTitle } from "../dom.js";
import { kindName, leads, turnOf, turnRef } from "../refs.js";
import { route } from "../router.js";
import { attempt } from "../state.js";
import { When, size } from "../text.js";
import { Empty, Loaded, ObjectActions, save } from "../ui/parts.js";

const PICTURE = /^image\/(?:png|jpeg|gif|webp)$/;
const READ = /^(?:text\/|application\/(?:json|xml|javascript))/;

export function ObjectPage() {
  const ref = route.value.parts[0] || "";
  return html`<div class="column"><${One} key=${ref} name=${ref} /></div>`;
}

function One({ name: ref }) {
  const found = useLoaded((stop) => call("all", "describe", { refs: [ref], size: 20_000 }, { signal: stop }).then((each) => each.objects[0]), [ref]);
  return html`<${Loaded} of=${found}>${(shown) => html`<${Shown} shown=${shown} />`}</${Loaded}>`;
}

function Shown({ shown }) {
  useTitle(shown.title || shown.ref);
  const turn = turnOf(shown.ref);
  if (shown.standing !== "there") return html`<h1>Not to be seen</h1><${Empty} title=${shown.why || shown.standing}><code>${shown.ref}</code></${Empty}>`;
  const load = () => attempt(async () => save(await bytes(shown.ref), shown.title || "object"));
  return html`<article><h1 dir="auto">${shown.title || shown.ref}</h1>
    <p class="memory-about"><span class="kind">${kindName(shown.kind)}</span>${shown.mime && html` <span class="quiet">${shown.mime}</span>`}${shown.size !== undefined && html` <span class="quiet">${size(shown.size)}</span>`}
      ${shown.at && html`<${When} at=${shown.at} />`}<span class="grow"></span><${ObjectActions} ref_=${shown.ref} title=${shown.title} /></p>
    <div class="actions start">${shown.kind === "file" && html`<button type="button" class="primary" onClick=${load}>Save the file</button>`}${turn && html`<a class="button" href=${leads(turnRef(shown.ref))}>Open its turn</a>`}</div>
    ${shown.kind === "file" ? html`<${Preview} shown=${shown} />` : html`<pre class="text" tabindex="0" dir="auto">${shown.text}</pre>`}
    <p class="quiet"><code>${shown.ref}</code></p></article>`;
}

/** A picture as a picture, a text as a text; anything else is only saved. */
function Preview({ shown }) {
  const [seen, setSeen] = useState(null);
  const mime = shown.mime || "";
  useEffect(() => {
    if (shown.size > 2_000_000 || !(PICTURE.test(mime) || READ.test(mime))) return undefined;
    const stop = new AbortController();
    let url = "";
    bytes(shown.ref, stop.signal).then(async (blob) => {
      if (PICTURE.test(mime)) setSeen({ url: (url = URL.createObjectURL(blob)) });
      else setSeen({ text: await blob.text() });
    }, () => {});
    return () => {
      stop.abort();
      if (url) URL.revokeObjectURL(url);
    };
  }, [shown.ref]);
  if (!seen) return null;
  return seen.url ? html`<img class="picture" src=${seen.url} alt=${shown.title} />` : html`<pre class="text" tabindex="0" dir="auto">${seen.text}</pre>`;
}
