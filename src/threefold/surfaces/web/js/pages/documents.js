// Documents: what was taken in, dropped files on their way, one document with its chunks in place.
import { bytes, call, object, upload } from "../api.js";
import { html, useEffect, useLoaded, useRef, useState, useTitle } from "../dom.js";
import { go, href, route } from "../router.js";
import { attempt, may } from "../state.js";
import { Marks, When, brief, counted, size } from "../text.js";
import { Badge, Confirm, Drop, Empty, Lacks, Loaded, More, ObjectActions, save } from "../ui/parts.js";
import { useOnce, usePaged } from "../ui/paging.js";
import { Sending, useSending } from "../ui/sending.js";

export function Documents() {
  const id = route.value.parts[0];
  return id ? html`<div class="column"><${Document} key=${id} id=${id} chunk=${route.value.query.chunk} /></div>` : html`<${Shelf} />`;
}

function Shelf() {
  useTitle("Documents");
  const list = usePaged("documents", 50, (part, stop) => call("doc", "list", { ...part, shared: true }, { signal: stop }), []);
  const sending = useSending((file, onProgress) => upload("/v1/doc/files", file, { source: file.name }, onProgress), list.again,
    (done) => `${done.outcome}, ${counted(done.chunks, "chunk")}`, (done) => href(["documents", done.id]));
  return html`<div class="column"><h1>Documents</h1>
    ${may("doc:write") ? html`<${Drop} label="Choose files" hint="Markdown, text, HTML, PDF and office files. The same file again replaces what changed." onFiles=${sending.send} />`
      : html`<${Lacks} what="add documents" grants=${["doc:write"]} />`}
    <${Sending} of=${sending} />
    <${Loaded} of=${list}>${({ documents, next }) => documents.length
      ? html`<ul class="rows">${documents.map((each) => html`<li key=${each.ref}><a class="row-main" href=${href(["documents", each.id])} dir="auto">${each.title || each.source}</a>
          <span class="quiet row-about"><span dir="auto">${each.source}</span> · ${counted(each.chunks, "chunk")} · ${counted(each.tokens, "token")} · <${When} at=${each.updated} /></span><${ObjectActions} ref_=${each.ref} title=${each.title || each.source} remember=${false} /></li>`)}</ul><${More} next=${next} busy=${list.busy} onMore=${list.more} />`
      : html`<${Empty} title="No document yet">Drop a handbook, notes or a PDF above: its passages are found, quoted and cited.</${Empty}>`}</${Loaded}></div>`;
}

const PAGE = 100;
// So many are shown before the one that is asked for.
const BEFORE = 3;
const isIt = (passage, chunk) => passage.ref.endsWith(`#${chunk}`);

/** The document from its beginning, or from about the chunk that is asked for; `start` is the number of the first one. */
async function read(id, chunk, stop) {
  const from = (start) => call("doc", "chunks", { id, start, limit: PAGE }, { signal: stop });
  const [document, first] = await Promise.all([call("doc", "get", { id, size: 1 }, { signal: stop }), from(0)]);
  const start = chunk && !first.chunks.some((each) => isIt(each, chunk)) ? await placeOf(`${document.ref}#${chunk}`, stop) : 0;
  return { document, start, ...(start ? await from(start) : first) };
}

async function placeOf(ref, stop) {
  try {
    return Math.max(0, (await object(ref, stop)).value.number - BEFORE);
  } catch (error) {
    // The document may have changed since.
    if ([404, 410, 422].includes(error.status)) return 0;
    throw error;
  }
}

function Document({ id, chunk }) {
  const found = useLoaded((stop) => read(id, chunk, stop), [id, chunk]);
  return html`<p><a href=${href(["documents"])}>All documents</a></p><${Loaded} of=${found}>${(whole) => html`<${Whole} whole=${whole} chunk=${chunk} put=${found.put} />`}</${Loaded}>`;
}

function Whole({ whole, chunk, put }) {
  const { document: doc, chunks, start, next } = whole;
  useTitle(doc.title);
  const [asking, setAsking] = useState(false);
  const [query, setQuery] = useState("");
  // Whoever asks for a chunk wants to see it where it stands.
  useEffect(() => setQuery(""), [chunk]);
  const remove = async () => {
    if (await attempt(() => call("doc", "delete", { id: doc.id }), "Removed for good")) go(["documents"]);
  };
  const [adding, later] = useOnce(async () => {
    const page = await call("doc", "chunks", { id: doc.id, start: next, limit: PAGE });
    put((now) => (now.next === next ? { ...now, ...page, chunks: [...now.chunks, ...page.chunks] } : now));
  });
  const [leading, earlier] = useOnce(async () => {
    const begin = Math.max(0, start - PAGE);
    const page = await call("doc", "chunks", { id: doc.id, start: begin, limit: start - begin });
    put((now) => (now.start === start ? { ...now, start: begin, chunks: [...page.chunks, ...now.chunks] } : now));
  });
  const load = () => attempt(async () => save(await bytes(doc.ref), doc.source.split("/").pop()));
  return html`<article><h1 dir="auto">${doc.title || doc.source}</h1>
    <p class="memory-about"><span class="quiet" dir="auto">${doc.source}</span> <${Badge}>${doc.mime}</${Badge}> <span class="quiet">${counted(doc.chunks, "chunk")}, ${counted(doc.tokens, "token")}, ${size(doc.characters)}</span> <${When} at=${doc.updated} /><span class="grow"></span><${ObjectActions} ref_=${doc.ref} title=${doc.title} remember=${false} /></p>
    <div class="actions start"><button type="button" onClick=${load}>Save the original</button>${may("doc:write") && html`<button type="button" class="danger" onClick=${() => setAsking(true)}>Remove</button>`}</div>
    <input type="search" aria-label="Search in this document" placeholder="Search in this document" dir="auto" value=${query} onInput=${(e) => setQuery(e.target.value)} />
    ${query.trim() ? html`<${Inside} doc=${doc} query=${query.trim()} />` : html`<${More} next=${start} busy=${leading} onMore=${earlier} label="Show earlier ones" />
      <ol class="chunks">${chunks.map((each) => html`<${Chunk} key=${each.ref} chunk=${each} wanted=${isIt(each, chunk)} />`)}</ol><${More} next=${next} busy=${adding} onMore=${later} />`}
    ${asking && html`<${Confirm} title="Remove this document?" action="Remove for good" onDo=${remove} onClose=${() => setAsking(false)}><p>Its text, its chunks and its file go, from every file of the store. Cards that stand for it say that it is gone.</p></${Confirm}>`}</article>`;
}

function Chunk({ chunk, wanted, words }) {
  const at = useRef(null);
  useEffect(() => {
    if (wanted) at.current.scrollIntoView({ block: "center" });
  }, [wanted]);
  return html`<li ref=${at} class=${wanted ? "chunk wanted" : "chunk"}><p class="chunk-head"><span class="quiet">${chunk.number + 1}${chunk.page ? `, page ${chunk.page}` : ""}</span> <span dir="auto">${chunk.headings.join(" › ")}</span><span class="grow"></span><${ObjectActions} ref_=${chunk.ref} title=${brief(chunk.text)} /></p>
    <div class="plain"><${Marks} text=${chunk.text} words=${words} /></div></li>`;
}

function Inside({ doc, query }) {
  const found = useLoaded((stop) => call("doc", "search", { query, sources: [doc.source], limit: 20 }, { signal: stop }), [query]);
  return html`<${Loaded} of=${found}>${({ chunks }) => chunks.length
    ? html`<ol class="chunks">${chunks.map((each) => html`<${Chunk} key=${each.ref} chunk=${each} words=${each.matched} />`)}</ol>`
    : html`<${Empty} title="Nothing of that in here">Try other words.</${Empty}>`}</${Loaded}>`;
}
