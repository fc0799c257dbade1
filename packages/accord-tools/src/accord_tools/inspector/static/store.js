// What the page shows now. Views read it, and are told which parts of it have changed.

const state = {
  traces: [],
  trace: null, // the id of the trace
  summary: null, // its header, sessions and handshake
  status: null, // how far it is read
  tab: "conversation",
  view: "runs", // runs, all, or the key of a search
  row: -1, // the message that is looked at; -1 while none is chosen
  query: "",
  agent: null, // the agent that the inspector has started, with its methods
  marked: null, // the message to compare with: its trace and row, and the name of the trace
  range: null, // the part of the time that is zoomed into: [from, to]
  times: "absolute", // absolute, or since the message before
};
const watchers = new Set();

export const get = () => state;

/** Change some parts, and tell the views which. */
export function set(changes) {
  const changed = new Set(Object.keys(changes).filter((name) => state[name] !== changes[name]));
  Object.assign(state, changes);
  if (changed.size) for (const watcher of [...watchers]) watcher(changed, state);
}

/** Call `watcher(changed, state)` after each change; returns how to stop it. */
export function watch(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** Look at a message because its reader wants to: a live trace is followed only from its last one. */
export const look = (row, changes = {}) => set({ ...changes, row, following: row === (state.status?.count ?? 0) - 1 });
