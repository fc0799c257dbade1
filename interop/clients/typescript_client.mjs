// The TypeScript SDK's client: takes the steps of a script one by one, and prints what the SDK gave for each.
//   client.mjs SCRIPT -- AGENT [ARGUMENT ...]
// `ACP_SDK` names the entry point of the SDK: the stable one, or `@agentclientprotocol/sdk/unstable`.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, readFile, realpath, writeFile } from "node:fs/promises";
import { dirname, isAbsolute, relative } from "node:path";
import { Readable, Writable } from "node:stream";

const acp = await import(process.env.ACP_SDK ?? "@agentclientprotocol/sdk");

const PATIENCE_MS = 30_000;
const INVALID_PARAMS = -32602;
const NOT_FOUND = -32002;

const [scriptFile, , command, ...commandArguments] = process.argv.slice(2);
const script = JSON.parse(readFileSync(scriptFile, "utf8"));
const known = { folder: script.folder, ...script.known };

let updates = [];
let asked = [];
let told = [];
let answers = {};
const everSeen = new Set();
const watchers = new Set();

// What a script says with `<name>` stands for what was kept under that name.
function filled(value) {
  if (typeof value === "string") {
    return value.replace(/<(\w+)>/g, (whole, name) => known[name] ?? whole);
  }
  if (Array.isArray(value)) return value.map(filled);
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, filled(inner)]));
  }
  return value;
}

async function until(condition, what) {
  if (condition()) return;
  await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`waited too long for ${what}`)), PATIENCE_MS);
    const watcher = () => {
      if (!condition()) return;
      clearTimeout(timer);
      watchers.delete(watcher);
      resolve();
    };
    watchers.add(watcher);
  });
}

// Files

async function within(path) {
  if (!isAbsolute(path)) throw new acp.RequestError(INVALID_PARAMS, `not an absolute path: ${path}`);
  const parent = await realpath(dirname(path)).catch(() => dirname(path));
  const from = relative(await realpath(script.folder), parent);
  if (from.startsWith("..")) throw new acp.RequestError(INVALID_PARAMS, `outside of the folder: ${path}`);
  return path;
}

async function readTextFile({ path, line, limit }) {
  const text = await readFile(await within(path), "utf8").catch((error) => {
    if (error instanceof acp.RequestError) throw error;
    throw new acp.RequestError(NOT_FOUND, `no such file: ${path}`);
  });
  if (line == null && limit == null) return { content: text };
  const first = (line ?? 1) - 1;
  const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  return { content: lines.slice(first, limit == null ? undefined : first + limit).join("") };
}

async function writeTextFile({ path, content }) {
  await mkdir(dirname(await within(path)), { recursive: true });
  await writeFile(path, content);
  return {};
}

// Terminals

const terminals = new Map();

function createTerminal({ command, args = [], env = [], cwd, outputByteLimit }) {
  const variables = Object.fromEntries(env.map(({ name, value }) => [name, value]));
  const child = spawn(command, args, { cwd: cwd ?? script.folder, env: { ...process.env, ...variables } });
  const terminal = { child, output: Buffer.alloc(0), truncated: false, limit: outputByteLimit };
  const collect = (data) => {
    terminal.output = Buffer.concat([terminal.output, data]);
    if (terminal.limit != null && terminal.output.length > terminal.limit) {
      terminal.truncated = true;
      terminal.output = terminal.output.subarray(terminal.output.length - terminal.limit);
    }
  };
  child.stdin.end();
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  terminal.exited = new Promise((resolve) => {
    child.on("error", (error) => {
      collect(Buffer.from(String(error)));
      resolve({ exitCode: 127, signal: null });
    });
    child.on("close", (exitCode, signal) => resolve({ exitCode, signal }));
  }).then((status) => (terminal.status = status));
  const terminalId = `terminal_${terminals.size}`;
  terminals.set(terminalId, terminal);
  return { terminalId };
}

function terminalOf({ terminalId }) {
  const terminal = terminals.get(terminalId);
  if (!terminal) throw new acp.RequestError(NOT_FOUND, `no such terminal: ${terminalId}`);
  return terminal;
}

function terminalOutput(params) {
  const { output, truncated, status } = terminalOf(params);
  return { output: output.toString("utf8"), truncated, exitStatus: status ?? null };
}

function killTerminal(params) {
  terminalOf(params).child.kill("SIGKILL");
  return {};
}

async function releaseTerminal(params) {
  const terminal = terminalOf(params);
  terminal.child.kill("SIGKILL");
  await terminal.exited;
  terminals.delete(params.terminalId);
  return {};
}

// Questions

function requestPermission({ options }) {
  const wanted = answers.permission ?? "allow_once";
  const chosen = options.find(({ kind }) => kind === wanted);
  return { outcome: chosen ? { outcome: "selected", optionId: chosen.optionId } : { outcome: "cancelled" } };
}

const lent = {
  "fs/read_text_file": readTextFile,
  "fs/write_text_file": writeTextFile,
  "terminal/create": createTerminal,
  "terminal/output": terminalOutput,
  "terminal/wait_for_exit": (params) => terminalOf(params).exited,
  "terminal/kill": killTerminal,
  "terminal/release": releaseTerminal,
  "session/request_permission": requestPermission,
  "elicitation/create": () => answers.elicitation ?? { action: "decline" },
};

function noted(method, answer) {
  return async ({ params }) => {
    const note = { method, params };
    asked.push(note);
    try {
      return (note.result = await answer(params));
    } catch (error) {
      note.error = { code: error.code, message: error.message };
      throw error;
    }
  };
}

function build() {
  const client = acp.client({ name: "interop-client" });
  client.onNotification("session/update", ({ params }) => {
    updates.push(params.update);
    everSeen.add(params.update.sessionUpdate);
    for (const watcher of [...watchers]) watcher();
  });
  const known = new Set(Object.values(acp.CLIENT_METHODS));
  for (const [method, answer] of Object.entries(lent)) {
    if (known.has(method)) client.onRequest(method, noted(method, answer));
  }
  if (known.has("elicitation/complete")) {
    client.onNotification("elicitation/complete", ({ params }) => {
      told.push({ method: "elicitation/complete", params });
    });
  }
  const asItIs = (params) => params;
  const echo = (params) => ({ echo: params });
  client.onRequest("_interop.example/echo", asItIs, noted("_interop.example/echo", echo));
  client.onNotification("_interop.example/told", asItIs, ({ params }) => {
    told.push({ method: "_interop.example/told", params });
  });
  return client;
}

// Steps

const aside = new Map();

function failure(error) {
  if (error instanceof acp.RequestError) {
    return { error: { code: error.code, message: error.message, data: error.data } };
  }
  return { error: { local: String(error?.message ?? error) } };
}

async function call(agent, step) {
  const params = filled(step.params ?? {});
  const answer = agent.request(step.call, params);
  answer.catch(() => {});
  if (step.cancel_after !== undefined) {
    await until(() => updates.length >= step.cancel_after, `${step.cancel_after} updates`);
    await agent.notify("session/cancel", { sessionId: params.sessionId });
  }
  if (step.aside) {
    aside.set(step.aside, answer);
    return {};
  }
  return { result: await answer };
}

async function take(agent, step) {
  if (step.tell) {
    await agent.notify(step.tell, filled(step.params ?? {}));
    return {};
  }
  if (step.await) {
    await until(() => everSeen.has(step.await), step.await);
    return {};
  }
  if (step.await_updates) {
    await until(() => updates.length >= step.await_updates, `${step.await_updates} updates`);
    return {};
  }
  if (step.finish) return { result: await aside.get(step.finish) };
  return call(agent, step);
}

const child = spawn(command, commandArguments, { stdio: ["pipe", "pipe", "inherit"] });
await build().connectWith(
  acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)),
  async (agent) => {
    for (const [index, step] of script.steps.entries()) {
      answers = { ...answers, ...step.answers };
      const outcome = await take(agent, step).catch(failure);
      // An answer can overtake updates that came before it: they have their turn now.
      await new Promise(setImmediate);
      for (const [name, field] of Object.entries(step.keep ?? {})) known[name] = outcome.result?.[field];
      console.log(JSON.stringify({ step: index, ...outcome, updates, asked, told, known }));
      [updates, asked, told] = [[], [], []];
    }
  },
);
child.stdin.end();
await new Promise((resolve) => (child.exitCode === null ? child.on("exit", resolve) : resolve()));
