// Texts of others, which are hostile: as text nodes, or as Markdown that was cut down to what is harmless.
import { Marked } from "../vendor/marked.js";
import DOMPurify from "../vendor/purify.js";
import { html, useLayoutEffect, useMemo, useRef } from "./dom.js";
import { address } from "./refs.js";

const ALLOWED = {
  ALLOWED_TAGS: [
    "a", "b", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "i", "li", "ol", "p", "pre", "s",
    "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["href", "start", "title"],
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};
const BLOCKS = "p, li, h3, h4, h5, h6, blockquote, td, th";
const escaped = (text) => text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // What looks like HTML in a text was meant to be read, not to be done.
    html: ({ text }) => escaped(text),
    // A picture from elsewhere would tell that somebody reads this.
    image: ({ text, href }) => escaped(`[${text || "image"}] ${href}`),
    // A page has one first and few second headings: those are ours.
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + 2);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

// Lists and quotations in one another, so deep that what is innermost would not be shown.
const DEEP = /^(?:[ \t]*(?:[-*+] |\d{1,9}[.)] |>)){60}/m;

/** As HTML that is not harmless yet; what is nested so deep that nobody could read it is shown as it is written. */
function drawn(text) {
  const plain = `<pre>${escaped(text)}</pre>`;
  if (DEEP.test(text)) return plain;
  try {
    return marked.parse(text, { async: false });
  } catch (error) {
    if (error instanceof RangeError) return plain;
    throw error;
  }
}

/** A text in Markdown as harmless nodes. */
export function nodes(text) {
  const fragment = DOMPurify.sanitize(drawn(text), ALLOWED);
  for (const link of fragment.querySelectorAll("a")) {
    if (!link.hasAttribute("href")) link.replaceWith(...link.childNodes);
    link.rel = "noopener noreferrer";
    link.target = "_blank";
  }
  for (const block of fragment.querySelectorAll(BLOCKS)) block.dir = "auto";
  for (const wide of fragment.querySelectorAll("pre, table")) wide.tabIndex = 0;
  return fragment;
}

/** Labels such as [t1] become links to what they stand for. */
function cite(fragment, refs) {
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const node of texts) {
    if (node.parentElement?.closest("a, code")) continue;
    const parts = node.data.split(/\[([a-z][0-9]{1,4})\]/);
    if (parts.length === 1) continue;
    node.replaceWith(...parts.map((part, at) => (at % 2 ? citation(part, refs[part]) : part)));
  }
}

function citation(label, ref) {
  if (!ref) return `[${label}]`;
  const link = Object.assign(document.createElement("a"), address(ref));
  link.className = "cite";
  link.textContent = label;
  link.title = ref;
  link.setAttribute("aria-label", `source ${label}`);
  return link;
}

// A line that only draws, such as the rule below the head of a table, or that says nothing. It is tried on trimmed lines, one
// by one: an expression that looks for them in a whole text takes minutes where somebody wrote thousands of spaces.
const DRAWN = /^(?:[\s:|-]{3,})?$/;

/** A text at a glance: without the signs of Markdown, which are not read here. */
export const glance = (text) =>
  text.split("\n").filter((line) => !DRAWN.test(line.trim())).join("\n").replace(/(^|\s)(?:#{1,6}|>)(?=\s)/gm, "$1").replace(/(\*\*|__|`+)/g, "").replace(/\n{2,}/g, "\n").trim();

/** The beginning of a text in a line, as a title; what was cut says so. */
export function brief(text, most = 80) {
  const whole = text.trim();
  const begins = whole.slice(0, most * 10);
  const line = glance(begins).replace(/\s+/g, " ");
  return line.length > most || begins !== whole ? `${line.slice(0, most - 1).trimEnd()}…` : line;
}

/** A text in Markdown; `refs` are what its labels stand for. */
export function Markdown({ text, refs }) {
  const at = useRef(null);
  useLayoutEffect(() => {
    const made = nodes(text);
    if (refs) cite(made, refs);
    at.current.replaceChildren(made);
  }, [text, refs]);
  return html`<div class="prose" dir="auto" ref=${at}></div>`;
}

/** A list of quotations with labels, as plain text; what is quoted is shown at a glance. */
export function Quotes({ text, refs = {} }) {
  const line = (words) => words.split(/(\[[a-z][0-9]{1,4}\])/).map((part) => {
    const label = part.slice(1, -1);
    return /^\[[a-z][0-9]{1,4}\]$/.test(part) && refs[label] ? html`<a class="cite" ...${address(refs[label])} aria-label=${`source ${label}`} title=${refs[label]}>${label}</a>` : ` ${glance(part)} `;
  });
  const lines = text.split("\n").filter(Boolean);
  const quoted = lines.filter((each) => each.startsWith("- "));
  return html`<div class="prose">${lines.filter((each) => !each.startsWith("- ")).map((each) => html`<p dir="auto">${line(each)}</p>`)}
    ${quoted.length > 0 && html`<ul>${quoted.map((each) => html`<li dir="auto">${line(each.slice(2))}</li>`)}</ul>`}</div>`;
}

/** A text with the words that matched marked, wherever they stand in it. */
export function Marks({ text, words }) {
  const parts = useMemo(() => split(text, words), [text, words]);
  return html`<span dir="auto">${parts.map((part, at) => (at % 2 ? html`<mark>${part}</mark>` : part))}</span>`;
}

/** Text and marked word by turns. */
export function split(text, words = []) {
  const known = [...new Set(words.filter(Boolean))].sort((a, b) => b.length - a.length);
  if (!known.length) return [text];
  const pattern = known.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  return text.split(new RegExp(`(${pattern})`, "gu"));
}

const MINUTE = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const LONG_AGO = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });

/** A moment, short; whole when one points at it. */
export function When({ at }) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return null;
  const now = new Date();
  const today = date.toDateString() === now.toDateString();
  const short = today ? MINUTE : date.getFullYear() === now.getFullYear() ? DAY : LONG_AGO;
  return html`<time datetime=${at} title=${FULL.format(date)}>${short.format(date)}</time>`;
}

const NUMBER = new Intl.NumberFormat();
export const counted = (count, one, many = `${one}s`) => `${NUMBER.format(count)} ${count === 1 ? one : many}`;
export const number = (value) => NUMBER.format(value);
export const percent = (share) => `${Math.round(share * 100)} %`;

/** How large a file is. */
export function size(bytes) {
  const steps = ["bytes", "kB", "MB", "GB"];
  let at = 0;
  let value = bytes;
  while (value >= 1000 && at < steps.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at ? value.toFixed(1) : value} ${steps[at]}`;
}
