// A board that is kept up to date, and what is written to it. Every write names the revision that was seen.
import { call } from "../api.js";
import { useCallback, useEffect, useRef, useState, usePolling } from "../dom.js";
import { fail, mayArrange, tell } from "../state.js";

const EVERY = 3000;

/** The board as it is, with cards as they are being moved here; `write` does acts, if one `writes`, `reload` looks again. */
export function useBoard(name) {
  const [board, setBoard] = useState(null);
  const [error, setError] = useState(null);
  const [moved, setMoved] = useState({});
  const latest = useRef(null);
  latest.current = board;
  // Questions are counted: an answer to one that was asked before the one that is shown, or before a write of here, is old.
  const asked = useRef(0);
  const old = useRef(0);
  // How many writes are not done yet, the last of them, what they moved, and the revisions that they made.
  const writing = useRef(0);
  const last = useRef(Promise.resolve());
  const placed = useRef([]);
  const mine = useRef(new Set());

  const reload = useCallback(async () => {
    const turn = (asked.current += 1);
    try {
      const found = await call("cnv", "get", { board: name, binned: true, size: 600 });
      setError(null);
      if (writing.current || turn <= old.current) return;
      old.current = turn;
      setBoard(found);
    } catch (problem) {
      setError(problem);
    }
  }, [name]);
  useEffect(() => void reload(), [name]);
  usePolling(reload, EVERY);

  /** Show a card somewhere else, at once. */
  const place = (id, rect) => setMoved((before) => ({ ...before, [id]: rect }));
  /** No more; where it was moved on since it was at `from`, it stays there. */
  const settle = (id, from) => setMoved((before) => {
    const { [id]: now, ...rest } = before;
    return from && now !== from ? before : rest;
  });

  /** The revision that was seen; what was made from here right after it was seen, too. */
  const known = ({ created, revision }) => {
    let at = revision;
    while (mine.current.has(`${created} ${at + 1}`)) at += 1;
    return at;
  };

  const send = async (ops, seen, { done = "", over = false, undo = null }) => {
    try {
      const made = await call("cnv", "edit", { board: name, ops, revision: over ? null : known(seen) });
      mine.current.add(`${made.created} ${made.revision}`);
      if (done) tell(done, "done", undo && { label: "Undo", run: () => write(undo, { over: true }) });
      return true;
    } catch (problem) {
      if (problem.status !== 409) fail(problem);
      else {
        const again = { label: "Keep mine", run: () => write(ops, { over: true }) };
        tell(`Somebody else changed the same meanwhile, which is shown now. Yours is not lost. (${problem.message})`, "error", again);
      }
      return false;
    }
  };

  /**
   * Do acts as one revision, after those that wait. `card` is the one that is shown at `rect` until the answer is there.
   * @param {Record<string, unknown>[]} ops
   */
  const write = async (ops, { card, rect, ...how } = {}) => {
    const seen = latest.current;
    writing.current += 1;
    if (card) placed.current.push([card, rect]);
    last.current = last.current.then(() => send(ops, seen, how));
    const fine = await last.current;
    writing.current -= 1;
    if (writing.current) return fine;
    old.current = asked.current;
    await reload();
    // What was written meanwhile settles all of them.
    if (!writing.current) for (const each of placed.current.splice(0)) settle(...each);
    return fine;
  };
  return { board, error, moved, place, settle, write, writes: mayArrange("cnv"), reload };
}

export const rectOf = (card, moved) => moved[card.id] || card.rect;
