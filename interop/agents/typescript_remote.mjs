// The TypeScript SDK's agent behind its own server, over HTTP and WebSocket. Prints its URL, and ends with its input.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { WebSocketServer } from "ws";
import * as acp from "@agentclientprotocol/sdk";
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } from "@agentclientprotocol/sdk/experimental/node";

const chunk = (text) => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });

async function talk({ params, client }) {
  const { sessionId, prompt } = params;
  const [verb, count] = prompt[0].text.split(" ");
  const say = (text) => client.notify(acp.methods.client.session.update, { sessionId, update: chunk(text) });
  if (verb === "ask") {
    const { outcome } = await client.request(acp.methods.client.session.requestPermission, {
      sessionId,
      toolCall: { toolCallId: "call", title: "Ask" },
      options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }],
    });
    await say(outcome.optionId === "yes" ? "allowed" : "refused");
  }
  for (let number = 0; verb === "count" && number < Number(count); number++) await say(`${number} `);
  return { stopReason: "end_turn" };
}

const agent = acp
  .agent({ name: "remote-agent" })
  .onRequest(acp.methods.agent.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }))
  .onRequest(acp.methods.agent.session.new, () => ({ sessionId: randomUUID() }))
  .onRequest(acp.methods.agent.session.prompt, talk);

const server = new AcpServer({ agent });
const http = createServer(createNodeHttpHandler(server));
http.on("upgrade", createNodeWebSocketUpgradeHandler(server, new WebSocketServer({ noServer: true })));
http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/acp`));
process.stdin.on("end", () => process.exit(0)).resume();
