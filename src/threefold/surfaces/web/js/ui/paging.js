// Lists that come in pages: more is asked for once, and what is asked for anew is as long as what is shown.
import { useLoaded, useRef, useState } from "../dom.js";
import { attempt } from "../state.js";

// So many rows are given at once, at most.
const MOST = 100;

/** Work that is not begun again while it is done; what goes wrong is told. */
export function useOnce(work) {
  const running = useRef(false);
  const [busy, setBusy] = useState(false);
  const run = async () => {
    if (running.current) return;
    running.current = true;
    setBusy(true);
    await attempt(work);
    running.current = false;
    setBusy(false);
  };
  return [busy, run];
}

/**
 * @param {string} rows what the rows of a page are called
 * @param {(part: { limit: number, cursor: string | null }, stop?: AbortSignal) => Promise<any>} load gives a page
 * @param {unknown[]} deps what the list is of
 */
export function usePaged(rows, size, load, deps) {
  const of = JSON.stringify(deps);
  const joined = (page, next) => ({ ...next, of, [rows]: [...page[rows], ...next[rows]] });
  const list = useLoaded(async (stop) => {
    const shown = list.value?.of === of ? list.value[rows].length : 0;
    let left = Math.max(1, Math.ceil(shown / size)) * size;
    let page = { of, next: null, [rows]: [] };
    do {
      const limit = Math.min(left, MOST);
      page = joined(page, await load({ limit, cursor: page.next }, stop));
      left -= limit;
    } while (left && page.next);
    return page;
  }, deps);
  const [busy, more] = useOnce(async () => {
    const page = list.value;
    const next = await load({ limit: size, cursor: page.next });
    // It may be another list by now.
    list.put((now) => (now.of === page.of && now.next === page.next ? joined(now, next) : now));
  });
  return { ...list, busy, more };
}
