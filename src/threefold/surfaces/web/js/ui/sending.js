// Files on their way to the server, one after the other, each with how far it is and what became of it.
import { html, useEffect, useRef, useState } from "../dom.js";
import { tell } from "../state.js";
import { percent, size } from "../text.js";

/**
 * What becomes of a file is told beside it, or by a message where its page was left.
 * @param {(file: File, onProgress: (share: number) => void) => Promise<any>} upload
 * @param {() => void} onDone after each file
 * @param {(done: any) => string} told says what became of a file
 * @param {(done: any) => string} opens the address of what was made of it, if it has one
 */
export function useSending(upload, onDone, told, opens = () => "") {
  const [files, setFiles] = useState([]);
  const queue = useRef(Promise.resolve());
  const count = useRef(0);
  const left = useRef(false);
  useEffect(() => () => (left.current = true), []);
  const set = (id, change) => setFiles((before) => before.map((each) => (each.id === id ? { ...each, ...change } : each)));
  const start = (id, file) => {
    queue.current = queue.current.then(async () => {
      set(id, { share: 0, problem: "" });
      try {
        const done = await upload(file, (share) => set(id, { share }));
        set(id, { done, share: 1 });
        onDone(done);
        const action = opens(done) && { label: "Open it", run: () => (location.hash = opens(done)) };
        if (left.current) tell(`${file.name}: ${told(done)}`, "done", action);
      } catch (error) {
        set(id, { problem: error.message });
        if (left.current) tell(`${file.name}: ${error.message}`, "error");
      }
    });
  };
  const send = (list) => {
    for (const file of list) {
      const id = (count.current += 1);
      setFiles((before) => [...before, { id, file, share: null, done: null, problem: "" }]);
      start(id, file);
    }
  };
  return { files, send, told, opens, again: (each) => start(each.id, each.file) };
}

export function Sending({ of }) {
  const told = (done) => (of.opens(done) ? html`<a href=${of.opens(done)}>${of.told(done)}</a>` : of.told(done));
  return html`<ul class="sending" aria-live="polite">${of.files.map((each) => html`<li key=${each.id}><span dir="auto">${each.file.name}</span> <span class="quiet">${size(each.file.size)}</span>
    ${each.problem ? html`<span class="problem">${each.problem}</span> <button type="button" onClick=${() => of.again(each)}>Try again</button>`
      : each.done ? html`<span class="done">${told(each.done)}</span>`
        : each.share === null ? html`<span class="quiet">waits</span>`
          : each.share < 1 ? html`<progress max="1" value=${each.share} aria-label=${`Sending ${each.file.name}`}></progress> <span class="quiet">${percent(each.share)}</span>`
            : html`<progress aria-label=${`Reading ${each.file.name}`}></progress> <span class="quiet">is being read</span>`}</li>`)}</ul>`;
}
