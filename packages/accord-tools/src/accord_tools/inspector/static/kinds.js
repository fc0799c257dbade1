// The kinds of messages: the places of a row, and the colour that a message has everywhere.

export const [NUMBER, TIME, TO_AGENT, KIND, SESSION, WHAT, DETAIL, SIZE, LATENCY, RUN, HOP, ID, FINDING] = Array.from({ length: 13 }, (_, at) => at);
export const [BROKEN, REQUEST, NOTIFICATION, ANSWER, ERROR, NOTE, STDERR, EVENT] = Array.from({ length: 8 }, (_, at) => at);

const CATEGORIES = [
  [/^session\/prompt|^session\/cancel|^state_update/, "turn"],
  [/^agent_thought/, "thought"],
  [/^agent_message|^user_message/, "model"],
  [/^tool_call|^plan|^terminal_/, "tool"],
  [/^session\/request_permission|^elicitation/, "user"],
  [/^fs\/|^terminal\//, "client"],
];

/** The category of a method. */
export const kindOfMethod = (method) => CATEGORIES.find(([pattern]) => pattern.test(method))?.[1] ?? "quiet";

/** The category of a row, which gives it its colour. */
export function category(row) {
  if (row[KIND] === ERROR || row[KIND] === BROKEN || / → failed$/.test(row[DETAIL])) return "error";
  return kindOfMethod(row[WHAT]);
}

/** The kind of a message in a word. */
export const kindWord = (kind) => ["not a message", "request", "notification", "answer", "error", "note", "stderr", "event"][kind] ?? "event";
