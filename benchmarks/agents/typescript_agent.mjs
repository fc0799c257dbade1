// The TypeScript SDK's agent, written as its README writes one: `agent(...).onRequest(...).connect(ndJsonStream(...))`.
// It is plain JavaScript because that is what runs either way.
import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const FILE = "/bench/file.txt";
const PATTERN = "the quick brown fox jumps over the lazy dog ";

const text = (length) => PATTERN.repeat(Math.floor(length / PATTERN.length) + 1).slice(0, length);
const OLD_TEXT = text(1024);
const NEW_TEXT = OLD_TEXT.toUpperCase();
const TOOL_TEXT = text(40);

class Figures {
  n = 0;
  times = [];
  begun = performance.now();

  // Latencies are there for requests only: timing each send would cost more than sending.
  bench() {
    const ms = performance.now() - this.begun;
    this.times.sort((a, b) => a - b);
    const rank = (share) => {
      if (this.times.length === 0) return null;
      const place = Math.min(this.times.length - 1, Math.floor(share * this.times.length));
      return Math.round(this.times[place] * 1e4) / 10;
    };
    return { ms, n: this.n, perSec: this.n / (ms / 1e3), p50us: rank(0.5), p99us: rank(0.99) };
  }
}

const update = (client, sessionId, what) => client.notify(acp.methods.client.session.update, { sessionId, update: what });

const chunk = (words) => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: words } });

async function stream(client, sessionId, words, count, awaited) {
  if (!awaited) {
    await Promise.all(Array.from({ length: count }, () => update(client, sessionId, chunk(words))));
    return;
  }
  for (let sent = 0; sent < count; sent++) {
    await update(client, sessionId, chunk(words));
  }
}

async function tools(client, sessionId, count) {
  for (let number = 0; number < count; number++) {
    const toolCallId = `call_${number}`;
    await update(client, sessionId, {
      sessionUpdate: "tool_call",
      toolCallId,
      title: "Edit a file",
      kind: "edit",
      status: "in_progress",
      content: [{ type: "diff", path: FILE, oldText: OLD_TEXT, newText: NEW_TEXT }],
    });
    await update(client, sessionId, {
      sessionUpdate: "tool_call_update",
      toolCallId,
      status: "completed",
      content: [{ type: "content", content: { type: "text", text: TOOL_TEXT } }],
    });
  }
}

async function read(client, sessionId, count, inFlight, figures) {
  let left = count;
  const oneAfterAnother = async () => {
    while (left-- > 0) {
      const begun = performance.now();
      await client.request(acp.methods.client.fs.readTextFile, { sessionId, path: FILE });
      figures.times.push(performance.now() - begun);
      figures.n++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, oneAfterAnother));
}

async function permission(client, sessionId) {
  const { outcome } = await client.request(acp.methods.client.session.requestPermission, {
    sessionId,
    toolCall: { toolCallId: "call_0", title: "Edit a file" },
    options: [
      { optionId: "allow", name: "Allow", kind: "allow_once" },
      { optionId: "reject", name: "Reject", kind: "reject_once" },
    ],
  });
  await update(client, sessionId, chunk([outcome.outcome, outcome.optionId].filter(Boolean).join(" ")));
}

const sessions = new Map();

async function prompt({ params, client }) {
  const figures = new Figures();
  const { sessionId } = params;
  const sent = params.prompt[0].text;
  const [verb, ...words] = sent.length > 1000 ? [""] : sent.split(/\s+/);
  const number = (place, otherwise = 0) => (/^-?\d+$/.test(words[place] ?? "") ? Number(words[place]) : otherwise);
  let stopReason = "end_turn";
  switch (verb) {
    case "stream":
      await stream(client, sessionId, text(number(1, 40)), number(0), !words.includes("nowait"));
      figures.n = number(0);
      break;
    case "tools":
      await tools(client, sessionId, number(0));
      figures.n = 2 * number(0);
      break;
    case "read":
      await read(client, sessionId, number(0), 1, figures);
      break;
    case "conc":
      await read(client, sessionId, number(0), number(1, 1), figures);
      break;
    case "big":
      await update(client, sessionId, chunk(text(number(0))));
      figures.n = 1;
      break;
    case "wait":
      await new Promise((resolve) => sessions.set(sessionId, resolve));
      stopReason = "cancelled";
      break;
    case "permission":
      await permission(client, sessionId);
      figures.n = 1;
      break;
    case "fail":
      throw new acp.RequestError(number(0), words.slice(1).join(" "), { command: "fail" });
    case "throw":
      throw new Error(words.join(" "));
    default:
      await update(client, sessionId, chunk(`echo:${sent}`));
      figures.n = 1;
  }
  return { stopReason, _meta: { bench: figures.bench() } };
}

const agent = acp
  .agent({ name: "bench-agent" })
  .onRequest(acp.methods.agent.initialize, ({ params }) => ({
    protocolVersion: params.protocolVersion,
    agentCapabilities: {},
  }))
  .onRequest(acp.methods.agent.session.new, () => {
    const sessionId = randomUUID();
    sessions.set(sessionId, () => {});
    return { sessionId };
  })
  .onRequest(acp.methods.agent.session.prompt, prompt)
  .onNotification(acp.methods.agent.session.cancel, ({ params }) => sessions.get(params.sessionId)?.());

// Behind a URL, as its documentation puts one there; prints the URL, and ends with its input.
async function serve() {
  const { createServer } = await import("node:http");
  const { WebSocketServer } = await import("ws");
  const { AcpServer } = await import("@agentclientprotocol/sdk/experimental/server");
  const node = await import("@agentclientprotocol/sdk/experimental/node");
  const server = new AcpServer({ agent });
  const http = createServer(node.createNodeHttpHandler(server));
  http.on("upgrade", node.createNodeWebSocketUpgradeHandler(server, new WebSocketServer({ noServer: true })));
  http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/acp`));
  process.stdin.on("end", () => process.exit(0)).resume();
}

if (process.argv.includes("--serve")) {
  await serve();
} else {
  agent.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
}
