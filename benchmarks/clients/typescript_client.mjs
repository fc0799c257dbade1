// The TypeScript SDK's client, written as its README writes one: `client(...).onNotification(...).connectWith(...)`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const CANCEL_AFTER_MS = 50;
const PATIENCE_MS = 20_000;
const PATTERN = "the quick brown fox jumps over the lazy dog ";
const text = (length) => PATTERN.repeat(Math.floor(length / PATTERN.length) + 1).slice(0, length);
const FILE_TEXT = `${text(63)}\n`.repeat(16);

const split = process.argv.indexOf("--");
const flags = process.argv.slice(2, split);
const [command, ...commandArguments] = split < 0 ? [] : process.argv.slice(split + 1);
const prompts = flags.filter((flag) => !flag.startsWith("--"));
const over = flags.find((flag) => flag.startsWith("--over="))?.slice("--over=".length);
if (!command || prompts.length === 0) {
  console.error("usage: client [--json] PROMPT [PROMPT ...] -- AGENT [ARGUMENT ...]");
  process.exit(2);
}

// Resident memory of a process in KiB; null where the system does not tell.
function resident(pid) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const field = (name) => Number(status.match(new RegExp(`^${name}:\\s+(\\d+)`, "m"))[1]);
    return { now: field("VmRSS"), peak: field("VmHWM") };
  } catch {
    return null;
  }
}

const words = (prompt) => prompt.split(/\s+/);

function expectedUpdates(prompt) {
  const [verb, count] = words(prompt);
  if (verb === "stream") return Number(count);
  if (verb === "tools") return 2 * Number(count);
  return ["read", "conc", "wait", "fail", "throw", "sessions"].includes(verb) ? 0 : 1;
}

function asPromised(prompt, stopReason, updates, error) {
  const [verb, code, ...message] = words(prompt);
  if (verb === "fail") return error?.code === Number(code) && error.message === message.join(" ");
  if (verb === "throw") return error !== null;
  const reason = verb === "wait" ? "cancelled" : "end_turn";
  return error === null && stopReason === reason && updates === expectedUpdates(prompt);
}

let seen = 0;

async function onePrompt(agent, sessionId, prompt) {
  const [verb, count] = words(prompt);
  // `echo BYTES` stands for a text too long for a command line; the agent sends it back.
  const sent = verb === "echo" ? text(Number(count)) : prompt;
  const expected = expectedUpdates(prompt);
  let response = null;
  let error = null;
  seen = 0;
  const begun = performance.now();
  const answer = agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: sent }] });
  if (verb === "wait") {
    await new Promise((resolve) => setTimeout(resolve, CANCEL_AFTER_MS));
    await agent.notify(acp.methods.agent.session.cancel, { sessionId });
  }
  try {
    response = await answer;
    // The answer can overtake the handling of updates that arrived before it.
    while (seen < expected && performance.now() - begun < PATIENCE_MS) {
      await new Promise(setImmediate);
    }
  } catch (refused) {
    if (!(refused instanceof acp.RequestError)) throw refused;
    error = { code: refused.code, message: refused.message };
  }
  const ms = performance.now() - begun;
  const updates = seen;
  const bench = response?._meta?.bench ?? null;
  return {
    prompt,
    ms,
    updates,
    perSec: (["read", "conc"].includes(verb) ? Number(count) : updates) / (ms / 1e3),
    // Only the side that asks can time a round trip, so these are the agent's.
    p50us: bench?.p50us ?? null,
    p99us: bench?.p99us ?? null,
    stopReason: response?.stopReason ?? null,
    bench,
    error,
    ok: asPromised(prompt, response?.stopReason, updates, error),
  };
}

async function manySessions(agent, pid, prompt) {
  const count = Number(words(prompt)[1]);
  const weigh = () => ({ agent: resident(pid), client: resident("self") });
  const before = weigh();
  const begun = performance.now();
  const opened = [];
  for (let number = 0; number < count; number++) {
    opened.push(await open(agent));
  }
  const ms = performance.now() - begun;
  return {
    prompt,
    ms,
    updates: 0,
    perSec: count / (ms / 1e3),
    p50us: null,
    p99us: null,
    stopReason: null,
    bench: null,
    error: null,
    memory: { before, after: weigh() },
    ok: new Set(opened).size === count,
  };
}

async function manyTurns(agent, sessionId, prompt) {
  const count = Number(words(prompt)[1]);
  const times = [];
  let ok = true;
  const begun = performance.now();
  for (let number = 0; number < count; number++) {
    const line = await onePrompt(agent, sessionId, "hello");
    times.push(line.ms * 1e3);
    ok &&= line.ok;
  }
  const ms = performance.now() - begun;
  times.sort((a, b) => a - b);
  const rank = (share) => times[Math.min(count - 1, Math.floor(share * count))] ?? null;
  return {
    prompt,
    ms,
    updates: count,
    perSec: count / (ms / 1e3),
    p50us: rank(0.5),
    p99us: rank(0.99),
    stopReason: null,
    bench: null,
    error: null,
    ok,
  };
}

async function open(agent) {
  const created = await agent.request(acp.methods.agent.session.new, { cwd: process.cwd(), mcpServers: [] });
  return created.sessionId;
}

function show(line) {
  if (flags.includes("--json")) {
    console.log(JSON.stringify(line));
    return;
  }
  const ended = line.error?.message ?? line.stopReason;
  console.log(`${line.prompt}: ${line.ms.toFixed(1)} ms, ${line.perSec.toFixed(0)}/s, ${ended}, ok: ${line.ok}`);
}

function measured(agent, sessionId, prompt) {
  switch (words(prompt)[0]) {
    case "sessions":
      return manySessions(agent, child.pid, prompt);
    case "turns":
      return manyTurns(agent, sessionId, prompt);
    default:
      return onePrompt(agent, sessionId, prompt);
  }
}

// An agent behind a URL prints the URL first.
async function remote(over) {
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  if (over === "websocket") {
    const { WebSocket } = await import("ws");
    const { createWebSocketStream } = await import("@agentclientprotocol/sdk/experimental/ws-client");
    return createWebSocketStream(line.replace("http", "ws"), { WebSocket });
  }
  const { createHttpStream } = await import("@agentclientprotocol/sdk/experimental/http-client");
  return createHttpStream(line);
}

const begun = performance.now();
const child = spawn(command, commandArguments, { stdio: ["pipe", "pipe", "inherit"] });
const stream = over
  ? await remote(over)
  : acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
let sound = true;

await acp
  .client({ name: "bench-client" })
  .onNotification(acp.methods.client.session.update, () => {
    seen++;
  })
  .onRequest(acp.methods.client.fs.readTextFile, () => ({ content: FILE_TEXT }))
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    const { optionId } = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  })
  .connectWith(stream, async (agent) => {
    await agent.request(acp.methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: false } },
    });
    const startMs = performance.now() - begun;
    const sessionId = await open(agent);
    for (const prompt of prompts) {
      const line = await measured(agent, sessionId, prompt);
      show({ ...line, startMs });
      sound &&= line.ok;
    }
  });

child.stdin.end();
if (over) setTimeout(() => process.exit(sound ? 0 : 1), 100); // its links may keep sockets open
process.exitCode = sound ? 0 : 1;
