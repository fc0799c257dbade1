// The TypeScript SDK's agent for the interop suite. What every agent of the suite does is said in `agents/README.md`.
// `ACP_SDK` names the entry point of the SDK: the stable one, or `@agentclientprotocol/sdk/unstable`.
import { basename } from "node:path";
import { Readable, Writable } from "node:stream";

const acp = await import(process.env.ACP_SDK ?? "@agentclientprotocol/sdk");

const NOT_FOUND = -32002;
const INVALID_PARAMS = -32602;
const AUTH_REQUIRED = -32000;
const PAGE = 2;
const MODES = ["ask", "code"];
const MODELS = ["small", "large"];

const sessions = new Map();
const told = [];
let created = 0;
let loggedIn = false;

const title = (name) => name[0].toUpperCase() + name.slice(1);

function refuse(code, message) {
  throw new acp.RequestError(code, message);
}

class Session {
  mode = MODES[0];
  model = MODELS[0];
  history = [];
  cancel = () => {};

  constructor(cwd) {
    this.id = `session_${created++}`;
    this.cwd = cwd;
    sessions.set(this.id, this);
  }

  options() {
    const options = MODELS.map((value) => ({ value, name: title(value) }));
    return [{ id: "model", name: "Model", type: "select", currentValue: this.model, options }];
  }

  settings() {
    const availableModes = MODES.map((id) => ({ id, name: title(id) }));
    return { modes: { currentModeId: this.mode, availableModes }, configOptions: this.options() };
  }

  async send(client, update) {
    this.history.push(update);
    await client.notify("session/update", { sessionId: this.id, update });
  }
}

const sessionOf = (sessionId) => sessions.get(sessionId) ?? refuse(NOT_FOUND, `no such session: ${sessionId}`);

const say = (session, client, text) =>
  session.send(client, { sessionUpdate: "agent_message_chunk", content: { type: "text", text } });

async function ask(session, client, action, known) {
  const params = filled({ sessionId: session.id, ...action.params }, known);
  let answer;
  try {
    const result = await client.request(action.ask, params);
    for (const [name, field] of Object.entries(action.keep ?? {})) known[name] = result[field];
    answer = { result };
  } catch (error) {
    answer = { error: { code: error.code, message: error.message } };
  }
  await say(session, client, `${JSON.stringify(answer)}\n`);
}

const filled = (params, known) =>
  JSON.parse(JSON.stringify(params).replace(/<(\w+)>/g, (whole, name) => known[name] ?? whole));

async function act(session, client, actions, cancelled) {
  const known = {};
  for (const action of actions) {
    if (action.update) {
      for (let number = 0; number < (action.times ?? 1); number++) {
        const template = JSON.stringify(action.update).replace("{n}", number);
        await session.send(client, JSON.parse(template.replace("{pad}", "x".repeat(action.pad ?? 0))));
      }
    } else if (action.ask) {
      await ask(session, client, action, known);
    } else if (action.tell) {
      await client.notify(action.tell, filled(action.params, known));
    } else if (action.said) {
      await say(session, client, JSON.stringify(told));
    } else if (action.wait) {
      await cancelled;
      return "cancelled";
    } else if (action.fail) {
      throw new acp.RequestError(action.fail.code, action.fail.message, action.fail.data);
    } else if (action.stop) {
      return action.stop;
    }
  }
  return "end_turn";
}

async function prompt({ params, client }) {
  const session = sessionOf(params.sessionId);
  const cancelled = new Promise((resolve) => (session.cancel = resolve));
  const texts = params.prompt.filter(({ type }) => type === "text").map(({ text }) => text);
  if (texts[0]?.startsWith("[")) {
    return { stopReason: await act(session, client, JSON.parse(texts[0]), cancelled) };
  }
  const kinds = params.prompt.map(({ type }) => type).join(" ");
  await say(session, client, `blocks: ${kinds}, ${texts.join("").length} letters`);
  return { stopReason: "end_turn" };
}

const lifecycle = { list: {}, resume: {}, close: {}, delete: {} };
const known = new Set(Object.values(acp.AGENT_METHODS));
if (known.has("session/fork")) lifecycle.fork = {};

const handlers = {
  initialize: () => ({
    protocolVersion: 1,
    agentInfo: { name: "interop-agent", version: "1.0.0" },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, audio: true, embeddedContext: true },
      sessionCapabilities: lifecycle,
      auth: { logout: {} },
    },
    authMethods: [{ id: "token", name: "Token" }],
  }),
  authenticate: ({ params }) => {
    if (params.methodId !== "token") refuse(INVALID_PARAMS, `no such method: ${params.methodId}`);
    loggedIn = true;
    return {};
  },
  logout: () => {
    loggedIn = false;
    return {};
  },
  "session/new": ({ params }) => {
    if (basename(params.cwd) === "private" && !loggedIn) refuse(AUTH_REQUIRED, "Authentication required");
    const session = new Session(params.cwd);
    return { sessionId: session.id, ...session.settings() };
  },
  "session/list": ({ params }) => {
    const there = [...sessions.values()].filter(({ cwd }) => params.cwd == null || cwd === params.cwd);
    const begin = Number(params.cursor ?? 0);
    const page = there.slice(begin, begin + PAGE).map(({ id, cwd }) => ({ sessionId: id, cwd }));
    return { sessions: page, nextCursor: begin + PAGE < there.length ? String(begin + PAGE) : null };
  },
  "session/load": async ({ params, client }) => {
    const session = sessionOf(params.sessionId);
    for (const update of session.history) {
      await client.notify("session/update", { sessionId: session.id, update });
    }
    return session.settings();
  },
  "session/resume": ({ params }) => sessionOf(params.sessionId).settings(),
  "session/fork": ({ params }) => {
    const session = new Session(params.cwd);
    session.history = [...sessionOf(params.sessionId).history];
    return { sessionId: session.id, ...session.settings() };
  },
  "session/close": ({ params }) => {
    sessionOf(params.sessionId).cancel();
    return {};
  },
  "session/delete": ({ params }) => {
    sessions.delete(params.sessionId);
    return {};
  },
  "session/set_mode": async ({ params, client }) => {
    const session = sessionOf(params.sessionId);
    if (!MODES.includes(params.modeId)) refuse(INVALID_PARAMS, `no such mode: ${params.modeId}`);
    session.mode = params.modeId;
    const update = { sessionUpdate: "current_mode_update", currentModeId: session.mode };
    await client.notify("session/update", { sessionId: session.id, update });
    return {};
  },
  "session/set_config_option": ({ params }) => {
    const session = sessionOf(params.sessionId);
    const fits = params.configId === "model" && MODELS.includes(params.value);
    if (!fits) refuse(INVALID_PARAMS, `no such option or value: ${params.configId}, ${params.value}`);
    session.model = params.value;
    return { configOptions: session.options() };
  },
  "session/prompt": prompt,
};

const asItIs = (params) => params;
const agent = acp.agent({ name: "interop-agent" });
for (const [method, handler] of Object.entries(handlers)) {
  if (known.has(method)) agent.onRequest(method, handler);
}
agent
  .onRequest("_interop.example/echo", asItIs, ({ params }) => ({ echo: params }))
  .onNotification("_interop.example/told", asItIs, ({ params }) => void told.push(params))
  .onNotification("session/cancel", ({ params }) => sessionOf(params.sessionId).cancel())
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
