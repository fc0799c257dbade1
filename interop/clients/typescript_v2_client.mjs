// The TypeScript SDK as a client that speaks version 2, with our agent.
//   typescript_v2_client.mjs AGENT [ARGUMENT ...]
// ACP_SDK is the folder of the SDK's compiled modules. It prints what it got, as one line of JSON.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const load = (module) => import(pathToFileURL(`${process.env.ACP_SDK}/${module}`).href);
const { ndJsonStream } = await load("v1/stable/acp.js");
const { client } = await load("v2/stable/acp.js");

const [command, ...options] = process.argv.slice(2);
const agent = spawn(command, options, { stdio: ["pipe", "pipe", "inherit"] });
const questions = [];

function decide({ params }) {
  questions.push({ title: params.title, subject: params.subject?.type });
  return { outcome: { outcome: "selected", optionId: "allow_once" } };
}

// Reads what the session says until it is idle with a stop reason.
async function untilIdle(session) {
  const seen = [];
  for (;;) {
    const message = await session.nextUpdate();
    seen.push(message.update);
    if (message.kind === "stop" && message.stopReason) return { seen, reason: message.stopReason };
  }
}

const app = client({ name: "typescript-v2" }).onRequest("session/request_permission", decide);
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

const found = await app.connectWith(stream, async (context) => {
  const answer = await context.request("initialize", {
    protocolVersion: 2,
    info: { name: "typescript-v2", version: "1" },
    capabilities: {},
  });
  const session = await context.buildSession(process.cwd()).start();
  const commands = session.newSessionResponse.availableCommands.map(({ name }) => name);

  await session.prompt("hello");
  const text = await session.readTextUntilIdle();

  await session.prompt("/ask");
  const asked = await untilIdle(session);

  await session.prompt("/fail");
  const failed = await untilIdle(session);

  const waiting = await session.prompt("/wait");
  const held = session.prompt("hello");
  await context.notify("session/cancel", { sessionId: session.sessionId });
  const outcome = await held.then(
    () => "inserted",
    (error) => error.code,
  );
  const cancelled = await untilIdle(session);

  await session.prompt("/run");
  const ran = await untilIdle(session);

  await session.prompt("/watch");
  await untilIdle(session);
  let work = session.background;
  const listed = work.map(({ type }) => type);
  await session.cancelToolCall(work[0].toolCallId);
  while (session.background.length > 0) await session.nextUpdate();
  await untilIdle(session);

  const options = await session.setConfigOption({ configId: "mode", type: "id", value: "code" });
  await context.request("session/close", { sessionId: session.sessionId });
  const resumed = await context.request("session/resume", {
    sessionId: session.sessionId,
    cwd: process.cwd(),
    replayFrom: { type: "start" },
  });
  return {
    version: answer.protocolVersion,
    name: answer.info.name,
    commands,
    text,
    asked: { questions, reason: asked.reason },
    failed: failed.seen.at(-1).error.message,
    cancelled: { reason: cancelled.reason, outcome, answered: typeof waiting.messageId },
    ran: ran.seen.filter((it) => it.sessionUpdate === "terminal_output_chunk").map((it) => it.data),
    background: listed,
    mode: options.configOptions.map((it) => it.currentValue),
    resumed: resumed.configOptions.map((it) => it.currentValue),
  };
});
console.log(JSON.stringify(found));
agent.stdin.end();
