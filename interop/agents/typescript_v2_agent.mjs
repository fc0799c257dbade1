// The TypeScript SDK as an agent that speaks version 2, for our client.
// ACP_SDK is the folder of the SDK's compiled modules. ACP_SERVED says what is served: "v2", "both" or "v1".
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const load = (module) => import(pathToFileURL(`${process.env.ACP_SDK}/${module}`).href);
const first = await load("v1/stable/acp.js");
const second = await load("v2/stable/acp.js");
const { agentProtocolRouter } = await load("protocol-router.js");

const texts = [];
const held = [];
let working = false;
let stop = () => {};
let count = 0;

const tell = (client, update) => client.notify("session/update", { sessionId: "s1", update });
const idle = (client, end) => tell(client, { sessionUpdate: "state_update", state: "idle", ...end });

function say(client, id, text) {
  const content = { type: "text", text };
  return tell(client, { sessionUpdate: "agent_message_chunk", messageId: id, content });
}

async function ask(client) {
  const toolCall = { toolCallId: "t1", title: "Edit a.py", kind: "edit", status: "pending" };
  const options = [
    { optionId: "y", name: "Yes", kind: "allow_once" },
    { optionId: "n", name: "No", kind: "reject_once" },
  ];
  await tell(client, { sessionUpdate: "state_update", state: "requires_action" });
  const { outcome } = await client.request("session/request_permission", {
    sessionId: "s1",
    title: "May I edit?",
    subject: { type: "tool_call", toolCall },
    options,
  });
  await tell(client, { sessionUpdate: "state_update", state: "running" });
  const status = outcome.optionId === "y" ? "completed" : "failed";
  await tell(client, { sessionUpdate: "tool_call_update", toolCallId: "t1", status });
}

async function work(client, text) {
  working = true;
  const id = `a${++count}`;
  let end = { stopReason: "end_turn" };
  await tell(client, { sessionUpdate: "state_update", state: "running" });
  if (text === "wait") {
    await say(client, id, "waiting");
    await new Promise((resolve) => (stop = resolve));
    end = { stopReason: "cancelled" };
  } else if (text === "fail") {
    end = { stopReason: "error", error: { code: -32603, message: "the model is silent" } };
  } else {
    if (text === "edit") await ask(client);
    await say(client, id, "two ");
    await say(client, id, "words");
  }
  await idle(client, end);
  working = false;
  held.shift()?.();
}

async function prompt({ params, client, signal }) {
  const { text } = params.prompt[0];
  signal.throwIfAborted(); // the prompt and its withdrawal may have come at once
  if (working) {
    await new Promise((resolve, reject) => {
      held.push(resolve);
      signal.addEventListener("abort", () => {
        held.splice(held.indexOf(resolve), 1);
        reject(signal.reason);
      });
    });
  }
  const messageId = `u${++count}`;
  texts.push(text);
  await tell(client, { sessionUpdate: "user_message", messageId, content: params.prompt });
  setImmediate(() => work(client, text));
  return { messageId };
}

async function resume({ params, client }) {
  if (params.replayFrom) {
    for (const [place, text] of texts.entries()) {
      const content = [{ type: "text", text }];
      await tell(client, { sessionUpdate: "user_message", messageId: `r${place}`, content });
    }
  }
  await idle(client, {});
  return {};
}

const v2 = second
  .agent({ name: "typescript-v2" })
  .onRequest("initialize", () => ({
    protocolVersion: 2,
    info: { name: "typescript-v2", version: "1" },
    capabilities: { session: { prompt: {}, mcp: { stdio: {} } } },
    authMethods: [],
  }))
  .onRequest("session/new", () => ({ sessionId: "s1" }))
  .onRequest("session/resume", resume)
  .onRequest("session/close", () => ({}))
  .onRequest("session/prompt", prompt)
  .onNotification("session/cancel", () => stop());

const v1 = first
  .agent({ name: "typescript-v1" })
  .onRequest("initialize", () => ({
    protocolVersion: 1,
    agentInfo: { name: "typescript-v1", version: "1" },
    agentCapabilities: {},
  }))
  .onRequest("session/new", () => ({ sessionId: "s1" }))
  .onRequest("session/prompt", async ({ client }) => {
    const content = { type: "text", text: "one word" };
    await tell(client, { sessionUpdate: "agent_message_chunk", content });
    return { stopReason: "end_turn" };
  });

const served = {
  v2,
  app: v1,
  v1: agentProtocolRouter().withV1(v1),
  both: agentProtocolRouter().withV1(v1).withV2(v2),
}[process.env.ACP_SERVED];
served.connect(first.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
