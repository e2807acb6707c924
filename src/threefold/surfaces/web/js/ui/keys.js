import { html } from "../dom.js";
import { overlay } from "../state.js";
import { Dialog } from "./parts.js";

const KEYS = [
  ["Everywhere", [["/ or Ctrl K", "find or go to"], ["?", "these keys"], ["Esc", "close what is open"]]],
  ["Writing", [["Enter", "send"], ["Shift Enter", "new line"]]],
  ["On a board", [
    ["Tab", "next card"], ["Arrows", "move the card"], ["Shift Arrows", "make it larger or smaller"], ["Enter", "open it"],
    ["n", "write a note"], ["c", "comment"], ["Delete", "into the bin"],
  ]],
];

/** Which keys there are. */
export function Keys({ pages }) {
  const going = ["Going to a page", pages.map((page) => [`g ${page.key}`, page.label])];
  return html`<${Dialog} title="Keys" wide onClose=${() => (overlay.value = "")}>
    <div class="keys-table">${[...KEYS, going].map(
      ([title, rows]) => html`<section key=${title}><h3>${title}</h3><dl>${rows.map(([key, does]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${does}</dd></div>`)}</dl></section>`,
    )}</div>
  </${Dialog}>`;
}
