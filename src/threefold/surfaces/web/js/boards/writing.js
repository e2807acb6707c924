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
  const writing = useRef(0);
  latest.current = board;

  const reload = useCallback(async () => {
    try {
      const found = await call("cnv", "get", { board: name, binned: true, size: 600 });
      // An answer that was on its way while something was written here is older than what is shown.
      if (!writing.current) setBoard((before) => (before && before.revision > found.revision ? before : found));
      setError(null);
    } catch (problem) {
      setError((before) => (latest.current ? before : problem));
      if (problem.status === 404) setError(problem);
    }
  }, [name]);
  useEffect(() => void reload(), [name]);
  usePolling(reload, EVERY);

  /** Show a card somewhere else, at once. */
  const place = (id, rect) => setMoved((before) => ({ ...before, [id]: rect }));
  const settle = (id) => setMoved(({ [id]: _, ...rest }) => rest);

  /**
   * Do acts as one revision. `card` is the one that is shown as placed until the answer is there.
   * @param {Record<string, unknown>[]} ops
   */
  const write = async (ops, { card, done = "", over = false, undo = null } = {}) => {
    writing.current += 1;
    try {
      const revision = over ? null : latest.current.revision;
      await call("cnv", "edit", { board: name, ops, revision });
      if (done) tell(done, "done", undo && { label: "Undo", run: () => write(undo, { over: true }) });
      return true;
    } catch (problem) {
      if (problem.status !== 409) fail(problem);
      else {
        const mine = { label: "Keep mine", run: () => write(ops, { over: true }) };
        tell(`Somebody else changed the same meanwhile, which is shown now. Yours is not lost. (${problem.message})`, "error", mine);
      }
      return false;
    } finally {
      writing.current -= 1;
      await reload();
      if (card) settle(card);
    }
  };
  return { board, error, moved, place, settle, write, writes: mayArrange("cnv"), reload };
}

export const rectOf = (card, moved) => moved[card.id] || card.rect;
