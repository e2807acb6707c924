// What goes on in a conversation now: what runs and waits, and the events of the turn that runs, as they come.
import { cancel, events, laneState, noLanes, withdraw } from "../api.js";
import { useCallback, useEffect, useReducer, useRef, useSeen, useState } from "../dom.js";
import { attempt } from "../state.js";

const EMPTY = { run: "", phase: "", agent: "", steps: [], said: [], files: [], panels: [], refs: {}, ended: "", error: "" };
// After a broken connection: so many milliseconds, longer each time.
const PAUSES = [500, 1000, 2000, 5000, 10_000];
// A browser has six connections to a server, for all its windows: one that is hidden so long lets its own go.
const HIDDEN = 3000;

const put = (list, id, change) => {
  const at = list.findIndex((each) => each.id === id);
  if (at < 0) return [...list, change({ id })];
  return list.map((each, number) => (number === at ? change(each) : each));
};

const steps = (state, id, change) => ({ ...state, steps: put(state.steps, id, change) });
const said = (state, id, change) => ({ ...state, said: put(state.said, id, change) });

/** What each event does to what is seen of the turn that runs. Pure. */
const DOES = {
  RUN_STARTED: (_, event) => ({ ...EMPTY, run: event.runId }),
  STEP_STARTED: (state, event) => ({ ...state, phase: event.stepName, agent: event.stepName }),
  STEP_FINISHED: (state) => ({ ...state, phase: "" }),
  TOOL_CALL_START: (state, event) => steps(state, event.toolCallId, (step) => ({ ...step, name: event.toolCallName, status: "running", args: "" })),
  TOOL_CALL_ARGS: (state, event) => steps(state, event.toolCallId, (step) => ({ ...step, args: (step.args || "") + event.delta })),
  TOOL_CALL_END: (state, event) => steps(state, event.toolCallId, (step) => ({ ...step, status: event.metadata?.status || "completed" })),
  TOOL_CALL_RESULT: (state, event) => steps(state, event.toolCallId, (step) => ({ ...step, result: event.content })),
  TEXT_MESSAGE_START: (state, event) => said(state, event.messageId, (message) => ({ text: "", ...message, role: event.role || "assistant" })),
  TEXT_MESSAGE_CONTENT: (state, event) => said(state, event.messageId, (message) => ({ role: "assistant", ...message, text: (message.text || "") + event.delta })),
  RUN_FINISHED: (state) => ({ ...state, ended: "completed" }),
  RUN_ERROR: (state, event) => ({ ...state, ended: "failed", error: event.message || "" }),
  CUSTOM: (state, event) => (CUSTOM[event.name] ? CUSTOM[event.name](state, event.value) : state),
};

/** Events that the protocol has no name for. */
const CUSTOM = {
  // What waits for the next turn is seen among what waits.
  "threefold.accepted": (state, value) =>
    value.turn === state.run && value.joined !== "queued" ? said(state, value.submission, () => ({ id: value.submission, role: "user", ...value })) : state,
  "threefold.context": (state, value) => ({ ...state, refs: value.refs || {} }),
  "threefold.file": (state, value) => ({ ...state, files: [...state.files, value] }),
  "threefold.panel": (state, value) => ({
    ...state, panels: put(state.panels, `${value.marker} ${value.name}`, (panel) => ({ ...panel, name: value.name, text: (panel.text || "") + value.delta })),
  }),
};
/** Whether trying again would not help: there are no lanes, or one may not see them. */
const final = (error) => noLanes(error) || [401, 403].includes(error.status);
const OVER = (event) => ["RUN_FINISHED", "RUN_ERROR"].includes(event.type) || event.name === "threefold.recorded";

export const seen = (state, event) => (DOES[event.type] ? DOES[event.type](state, event) : state);

const QUIET = { turn: null, submissions: [], waiting: [] };

const reduce = (state, event) => (event === null ? EMPTY : seen(state, event));

const beginning = () => ({ last: "", run: "" });

/**
 * The lane of a conversation, and of an agent where one is chosen. `onRecorded` is called when a turn ended and can be read.
 * `there` is false where this server has no lanes. Nothing is listened for while the window is hidden, or in a
 * conversation that is new: nothing was sent to it.
 */
export function useLane(conversation, agent, isNew, onRecorded) {
  const [live, tell] = useReducer(reduce, EMPTY);
  const [state, setState] = useState(QUIET);
  const [there, setThere] = useState(true);
  const [lost, setLost] = useState(false);
  // The lane is let go a moment after its last event: what has ended here runs no more.
  const over = useRef(new Set());
  const recorded = useRef(onRecorded);
  recorded.current = onRecorded;
  const place = useRef(beginning());
  const seen = useSeen(HIDDEN);
  const begun = useRef(false);
  begun.current ||= !isNew || Boolean(state.turn);
  const follows = seen && begun.current;

  const look = useCallback(async (stop) => {
    try {
      const found = await laneState(conversation, agent, stop);
      setState(over.current.has(found.turn) ? { ...found, turn: null, submissions: [] } : found);
      setThere(true);
    } catch (error) {
      if (noLanes(error)) setThere(false);
    }
  }, [conversation, agent]);

  useEffect(() => {
    const stop = new AbortController();
    const ended = async (run) => {
      await recorded.current();
      over.current.add(run);
      await look(stop.signal);
    };
    look(stop.signal).then(() => {
      if (follows && !stop.signal.aborted) listen(conversation, agent, place.current, stop.signal, { tell, look, setLost, ended });
    });
    return () => {
      stop.abort();
      setLost(false);
    };
  }, [conversation, agent, follows]);
  useEffect(() => () => {
    place.current = beginning();
    tell(null);
    setState(QUIET);
  }, [conversation, agent]);

  /** Something was sent: what comes of it is told from its beginning, also to who did not listen yet. */
  const accepted = (after) => {
    place.current.last ||= after;
    return look();
  };
  const stop = () => attempt(() => cancel(conversation, agent), "Stopping…");
  const takeBack = async (submission) => {
    await attempt(() => withdraw(conversation, agent, submission), "Withdrawn: it is not sent");
    await look();
  };
  return { live, state, there, lost, accepted, stop, takeBack };
}

/** Tells what comes, from a `place` on, which is where it goes on after a while of not listening. */
async function listen(conversation, agent, place, stop, { tell, look, setLost, ended }) {
  let tries = 0;
  const opened = () => {
    if (tries) look(stop);
    tries = 0;
    setLost(false);
  };
  while (!stop.aborted) {
    try {
      for await (const { id, data } of events(conversation, agent, place.last, stop, opened)) {
        if (stop.aborted) return;
        tell(data);
        if (!OVER(data)) place.last = id || place.last;
        if (data.type === "RUN_STARTED") place.run = data.runId;
        if (["RUN_STARTED", "CUSTOM"].includes(data.type)) await look(stop);
        if (!OVER(data)) continue;
        await ended(data.value?.turn?.turn || place.run);
        if (stop.aborted) return;
        tell(null);
        // Only now: where the turn could not be read, its end is told again after the next try.
        place.last = id || place.last;
      }
    } catch (error) {
      if (stop.aborted || final(error)) return;
      setLost(tries > 1);
    }
    await new Promise((done) => setTimeout(done, PAUSES[Math.min(tries, PAUSES.length - 1)]));
    tries += 1;
  }
}
