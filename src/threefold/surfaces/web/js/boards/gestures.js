// Moving and resizing with a mouse, a finger or the keyboard: all of it ends in one act.
import { useRef } from "../dom.js";

const STEP = 20;
const LEAST = { w: 140, h: 100 };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
// What was pressed goes to the server when one lets go for so many milliseconds.
const PAUSE = 500;

const rounded = (rect) => ({ x: Math.round(rect.x), y: Math.round(rect.y), w: Math.round(rect.w), h: Math.round(rect.h) });

/** A rectangle after a drag by (dx, dy), as a whole or at its corner. Pure. */
export const dragged = (rect, mode, dx, dy) =>
  rounded(mode === "resize" ? { ...rect, w: Math.max(LEAST.w, rect.w + dx), h: Math.max(LEAST.h, rect.h + dy) } : { ...rect, x: rect.x + dx, y: rect.y + dy });

/** The acts that make one rectangle of another. Pure. */
export function acts(card, before, now) {
  const ops = [];
  if (before.x !== now.x || before.y !== now.y) ops.push({ op: "move", card, x: now.x, y: now.y });
  if (before.w !== now.w || before.h !== now.h) ops.push({ op: "resize", card, w: now.w, h: now.h });
  return ops;
}

/** What a card listens to. `rect` is where it is shown now. */
export function useGestures(card, rect, { place, settle, write }) {
  const held = useRef(null);
  const timer = useRef(0);
  const start = useRef(null);
  const finish = (before, now) => {
    const ops = acts(card.id, before, now);
    if (ops.length) write(ops, { card: card.id, rect: now });
    else settle(card.id);
  };

  const down = (mode) => (event) => {
    if (event.button !== 0 || (mode === "move" && event.target.closest("a, button, input, textarea"))) return;
    // Another finger does not take over.
    if (held.current) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    held.current = { mode, pointer: event.pointerId, x: event.clientX, y: event.clientY, rect, now: rect };
    event.preventDefault();
  };
  const move = (event) => {
    const drag = held.current;
    if (drag?.pointer !== event.pointerId) return;
    drag.now = dragged(drag.rect, drag.mode, event.clientX - drag.x, event.clientY - drag.y);
    place(card.id, drag.now);
  };
  const up = (event) => {
    const drag = held.current;
    if (drag?.pointer !== event.pointerId) return;
    held.current = null;
    // What the system broke off, such as for a gesture of its own, leaves the card where it was.
    finish(drag.rect, event.type === "pointercancel" ? drag.rect : drag.now);
  };
  const handle = (mode) => ({ onPointerDown: down(mode), onPointerMove: move, onPointerUp: up, onPointerCancel: up });

  /** True where the key moved or resized the card. */
  const pressed = (event) => {
    const arrow = ARROWS[event.key];
    if (!arrow || event.ctrlKey || event.metaKey || event.altKey) return false;
    start.current ??= rect;
    const now = dragged(rect, event.shiftKey ? "resize" : "move", arrow[0] * STEP, arrow[1] * STEP);
    place(card.id, now);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      const before = start.current;
      start.current = null;
      finish(before, now);
    }, PAUSE);
    return true;
  };
  return { handle, pressed };
}
