// Where answers come from: the server of the inspector, or, in an exported page, the page itself.

class Server {
  constructor() {
    const given = location.hash.slice(1);
    if (given) {
      sessionStorage.setItem("token", given);
      history.replaceState(null, "", location.pathname); // the token stays out of the address bar and its history
    }
    this.token = sessionStorage.getItem("token") ?? "";
  }

  async ask(path, params = {}, signal = undefined) {
    const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null);
    const query = new URLSearchParams(given).toString();
    const reply = await fetch(`api/${path}${query ? `?${query}` : ""}`, { headers: this.headers(), signal });
    const body = await reply.text();
    if (!reply.ok) throw new Error(problemOf(reply.status, body));
    return JSON.parse(body);
  }

  /** The agent that this inspector has started, to which messages can be sent; null if there is none. */
  agent() {
    return this.ask("agent");
  }

  /** Send a message to that agent; gives its answer. */
  async send(message) {
    const headers = { ...this.headers(), "content-type": "application/json" };
    const reply = await fetch("api/agent", { method: "POST", headers, body: JSON.stringify(message) });
    const body = await reply.text();
    if (!reply.ok) throw new Error(problemOf(reply.status, body));
    return JSON.parse(body);
  }

  /** Call `tell(status)` each time that the trace has grown, until `signal` is aborted. */
  async live(trace, tell, signal) {
    while (!signal.aborted) {
      try {
        await this.follow(trace, tell, signal);
      } catch (error) {
        if (signal.aborted) return;
        tell(null, error);
      }
      await new Promise((done) => setTimeout(done, 1000));
    }
  }

  async follow(trace, tell, signal) {
    const reply = await fetch(`api/traces/${trace}/live`, { headers: this.headers(), signal });
    if (!reply.ok) throw new Error(problemOf(reply.status, await reply.text()));
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      const last = events.findLast((event) => event.startsWith("data: "));
      if (last) tell(JSON.parse(last.slice(6)));
    }
  }

  headers() {
    return { authorization: `Bearer ${this.token}` };
  }
}

function problemOf(status, body) {
  if (status === 401) return "The token is missing or wrong. Open the URL that accord inspect printed.";
  try {
    return JSON.parse(body).error;
  } catch {
    return body || `status ${status}`;
  }
}

export const source = globalThis.accordExport?.source ?? new Server();

/** Ask about the trace with this id. */
export const askTrace = (trace, name, params, signal) =>
  source.ask(name ? `traces/${trace}/${name}` : `traces/${trace}`, params, signal);

const PAGE = 2000; // turns that one answer holds

const known = new Map(); // by trace: its generation, and its turns as they were told last

/** All turns of a trace, however many there are: only those that are new, or had not ended, are asked for. */
export async function allTurns(trace) {
  const kept = known.get(trace) ?? { turns: [] };
  const open = kept.turns.findIndex((turn) => turn.end === null);
  const found = open < 0 ? [...kept.turns] : kept.turns.slice(0, open);
  for (;;) {
    const { total, turns, generation } = await askTrace(trace, "turns", { from: found.length, n: PAGE });
    if (generation !== kept.generation && kept.turns.length) {
      known.delete(trace);
      return allTurns(trace);
    }
    found.push(...turns);
    if (turns.length && found.length < total) continue;
    known.set(trace, { generation, turns: found });
    return found;
  }
}
