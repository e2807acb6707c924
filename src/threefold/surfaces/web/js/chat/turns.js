// Which turns of a conversation are at hand: the last ones, or those around one, and more on either side.
import { call } from "../api.js";
import { useCallback, useEffect, useRef, useState } from "../dom.js";

const PAGE = 10;
// So many of the last are read anew when one was recorded.
const RECENT = 3;
// Of a text so many characters are read; more of it is in the object itself.
const SIZE = 40_000;

const whole = (entry, stop) => call("conv", "get", { ref: entry.ref, size: SIZE }, { signal: stop }).then((found) => found.value);
const all = (entries, stop) => Promise.all(entries.map((entry) => whole(entry, stop)));
const listed = (conversation, how, stop) => call("conv", "catalog", { conversation, limit: PAGE, ...how }, { signal: stop });

async function first(conversation, turn, stop) {
  if (turn) {
    const around = await aroundTurn(conversation, turn, stop);
    if (around) return around;
  }
  const page = await listed(conversation, { order: "newest" }, stop);
  return { turns: await all(page.turns.reverse(), stop), earlier: page.next && { order: "newest", cursor: page.next }, later: null };
}

/** From a turn on, and some before it; null where it is not there. */
async function aroundTurn(conversation, ref, stop) {
  let wanted;
  try {
    wanted = await whole({ ref }, stop);
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
  const [before, from] = await Promise.all([
    listed(conversation, { until: wanted.started, order: "newest", limit: 3 }, stop),
    listed(conversation, { since: wanted.started, order: "oldest" }, stop),
  ]);
  return {
    turns: await all([...before.turns.reverse(), ...from.turns], stop),
    earlier: before.next && { until: wanted.started, order: "newest", cursor: before.next },
    later: from.next && { since: wanted.started, order: "oldest", cursor: from.next },
  };
}

const merged = (turns) => {
  const known = new Map(turns.map((turn) => [turn.ref, turn]));
  return [...known.values()].sort((a, b) => a.ordinal - b.ordinal);
};

/** Of turns those that were recorded while others were looked for, where these go up to the last. */
const since = (found, turns) => (found.later ? [] : turns.filter((turn) => turn.ordinal > (found.turns.at(-1)?.ordinal || 0)));

/** The turns of a conversation, and how to get more of them. */
export function useTurns(conversation, turn, isNew) {
  const [state, setState] = useState({ turns: [], earlier: null, later: null, loading: !isNew, error: null });
  const shown = useRef(turn);
  const latest = useRef(state);
  latest.current = state;
  const loading = useRef(null);
  const load = useCallback((stop, wanted) => {
    const work = async () => {
      try {
        const found = await first(conversation, wanted, stop);
        setState((before) => ({ ...found, turns: [...found.turns, ...since(found, before.turns)], loading: false, error: null }));
      } catch (error) {
        if (error.name === "AbortError") return;
        const missing = error.status === 404;
        setState((before) => ({ ...before, loading: false, error: missing ? null : error }));
      }
    };
    loading.current = work();
    return loading.current;
  }, [conversation]);
  useEffect(() => {
    if (isNew) return undefined;
    const stop = new AbortController();
    shown.current = turn;
    load(stop.signal, turn);
    return () => stop.abort();
  }, [conversation, turn, isNew]);

  const more = async (side) => {
    const { order, cursor, since, until } = state[side];
    const page = await listed(conversation, { order, cursor, since, until });
    const turns = await all(page.turns);
    setState((before) => ({ ...before, turns: merged([...turns, ...before.turns]), [side]: page.next && { ...before[side], cursor: page.next } }));
  };
  /** The newest turns are read, such as after one was recorded. While there are later ones to be asked for, they are among these. */
  const renew = useCallback(async () => {
    // One may be on the way from there to the end, where this belongs.
    if (latest.current.later) await loading.current;
    const page = await listed(conversation, { order: "newest" });
    const known = new Set(latest.current.turns.map((each) => each.ref));
    const turns = await all(page.turns.filter((each, at) => at < RECENT || !known.has(each.ref)));
    const joins = !page.next || page.turns.some((each) => known.has(each.ref));
    setState((before) => {
      if (before.later) return before;
      if (joins) return { ...before, turns: merged([...before.turns, ...turns]) };
      return { ...before, turns: merged(turns), earlier: { order: "newest", cursor: page.next } };
    });
  }, [conversation]);
  /** Whether a turn was recorded that is not here; then it is read. */
  const look = async () => {
    if (state.loading || state.error || state.later) return false;
    const { turns } = await listed(conversation, { order: "newest", limit: 1 });
    if (!turns.length || state.turns.some((each) => each.ref === turns[0].ref)) return false;
    await renew();
    return true;
  };
  /** One turn is read again, such as after a reaction to it. */
  const reread = async (ref) => {
    const turn_ = await whole({ ref });
    setState((before) => ({ ...before, turns: before.turns.map((each) => (each.ref === ref ? turn_ : each)) }));
  };
  return { ...state, more, renew, look, reread, again: () => load(undefined, shown.current) };
}
