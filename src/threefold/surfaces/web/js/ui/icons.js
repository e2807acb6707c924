import { html } from "../dom.js";

const PATHS = {
  chat: "M4 5h16v11H9l-5 4z",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5L20 20",
  memories: "M6 4h12v16l-6-4-6 4z",
  boards: "M4 5h7v6H4zM13 5h7v10h-7zM4 13h7v6H4zM13 17h7v2h-7z",
  documents: "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
  import: "M12 4v11M7 10l5 5 5-5M4 20h16",
  context: "M4 6l8-3 8 3-8 3zM4 11l8 3 8-3M4 16l8 3 8-3",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M14 5v4M8 15v4",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  attach: "M8 12l5-5a3 3 0 0 1 4 4l-7 7a5 5 0 0 1-7-7l7-7",
  send: "M12 20V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  close: "M6 6l12 12M18 6L6 18",
  add: "M12 5v14M5 12h14",
  bin: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  note: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
  link: "M10 14l4-4M9 7l2-2a4 4 0 0 1 6 6l-2 2M15 17l-2 2a4 4 0 0 1-6-6l2-2",
  person: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM5 20c0-4 3-6 7-6s7 2 7 6",
  down: "M7 11v8H4v-8zM7 11l4-7c2 0 2 1 2 2v4h6l-2 9H7",
  back: "M15 5l-7 7 7 7",
};

/** A picture beside a word; it says nothing by itself. `flip`: it points along the line, whichever way one reads. */
export function Icon({ name, flip = false }) {
  return html`<svg class=${flip ? "icon flip" : "icon"} viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${PATHS[name] || PATHS.more} /></svg>`;
}
