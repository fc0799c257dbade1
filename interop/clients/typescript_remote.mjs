// The TypeScript SDK's client over HTTP or WebSocket, as its documentation starts one. Prints what it heard as JSON.
//   node typescript_remote.mjs URL
import { WebSocket } from "ws";
import * as acp from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const url = process.argv[2];
const stream = url.startsWith("ws") ? createWebSocketStream(url, { WebSocket }) : createHttpStream(url);
const heard = {};

function hear({ sessionId, update }) {
  if (update.sessionUpdate === "agent_message_chunk") {
    heard[sessionId] = (heard[sessionId] ?? "") + update.content.text;
  }
}

const told = await acp
  .client({ name: "remote-client" })
  .onNotification(acp.methods.client.session.update, ({ params }) => hear(params))
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => ({
    outcome: { outcome: "selected", optionId: params.options.find((it) => it.kind === "allow_once").optionId },
  }))
  .connectWith(stream, async (agent) => {
    await agent.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
    const open = () => agent.request(acp.methods.agent.session.new, { cwd: "/project", mcpServers: [] });
    const [one, two] = [await open(), await open()];
    const prompt = (session, text) =>
      agent.request(acp.methods.agent.session.prompt, {
        sessionId: session.sessionId,
        prompt: [{ type: "text", text }],
      });
    const stops = await Promise.all([prompt(one, "count 200"), prompt(two, "count 200")]);
    stops.push(await prompt(one, "ask"));
    const said = [heard[one.sessionId], heard[two.sessionId]];
    heard[one.sessionId] = "";
    await agent.request(acp.methods.agent.session.load, { ...one, cwd: "/project", mcpServers: [] });
    return { stops: stops.map((it) => it.stopReason), said, replayed: heard[one.sessionId] };
  });
console.log(JSON.stringify(told));
process.exit(0);
