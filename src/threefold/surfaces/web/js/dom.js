// The one place that knows which libraries draw.
import { Fragment, createContext, h, render } from "../vendor/preact.js";
import { useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState } from "../vendor/preact-hooks.js";
import { batch, computed, effect, signal } from "../vendor/signals.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);
export {
  Fragment, batch, computed, createContext, effect, render, signal, useCallback, useContext, useEffect, useId,
  useLayoutEffect, useMemo, useReducer, useRef, useState,
};

/**
 * What an asynchronous function gives, and how it stands. It runs again when `deps` change or `again` is called; an
 * answer that comes late, for what is not asked any more, is dropped. The last value stays until the next is there.
 * @param {(signal: AbortSignal) => Promise<any>} load
 * @param {unknown[]} deps
 */
export function useLoaded(load, deps) {
  const [state, setState] = useState({ value: undefined, error: null, loading: true });
  const [turn, again] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    const stop = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    load(stop.signal).then(
      (value) => stop.signal.aborted || setState({ value, error: null, loading: false }),
      (error) => stop.signal.aborted || setState((before) => ({ ...before, error, loading: false })),
    );
    return () => stop.abort();
  }, [...deps, turn]);
  const put = useCallback((change) => setState((before) => ({ ...before, value: change(before.value) })), []);
  return { ...state, again, put };
}

/** Sets the title of the window while a page is shown. */
export function useTitle(title) {
  useEffect(() => {
    document.title = title ? `${title} · Threefold` : "Threefold";
  }, [title]);
}

/** Whether the window is seen; it is not where it has been hidden for so many milliseconds. */
export function useSeen(milliseconds) {
  const [seen, setSeen] = useState(!document.hidden);
  useEffect(() => {
    let timer = 0;
    const changed = () => {
      clearTimeout(timer);
      if (document.hidden) timer = setTimeout(() => setSeen(false), milliseconds);
      else setSeen(true);
    };
    changed();
    document.addEventListener("visibilitychange", changed);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", changed);
    };
  }, [milliseconds]);
  return seen;
}

/** Calls `tick` every so many milliseconds while the window is seen, ten times as seldom while it is not. */
export function usePolling(tick, milliseconds) {
  const latest = useRef(tick);
  latest.current = tick;
  useEffect(() => {
    let timer = 0;
    let live = true;
    let running = false;
    const next = () => {
      timer = setTimeout(run, document.hidden ? milliseconds * 10 : milliseconds);
    };
    const run = async () => {
      clearTimeout(timer);
      // That which runs goes on by itself: a second one would, too.
      if (running) return;
      running = true;
      try {
        await latest.current();
      } finally {
        running = false;
        if (live) next();
      }
    };
    const seen = () => document.hidden || run();
    next();
    document.addEventListener("visibilitychange", seen);
    return () => {
      live = false;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [milliseconds]);
}
