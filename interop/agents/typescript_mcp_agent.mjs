// An agent of the TypeScript SDK that uses the MCP servers of its client over ACP.
//   list                    says the names of the first server's tools
//   NAME {"left": 2, ...}   calls a tool, says each progress that it reports, and then what it answered
//   bridge                  says how the SDK's bridge describes the servers, for an MCP client that knows URLs only
// ACP_SDK is the folder of the SDK's compiled modules.
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const load = (module) => import(pathToFileURL(`${process.env.ACP_SDK}/${module}`).href);
const acp = await load("v1/unstable/acp.js");
const { McpOverAcpHttpBridge } = await load("mcp/http.js");

const caller = new acp.McpOverAcpCaller({ clientInfo: { name: "typescript-mcp", version: "1" } });
const bridge = new McpOverAcpHttpBridge(caller);
const sessions = new Map();

async function answer(words, { servers, client }, say) {
  const [name, ...rest] = words.split(" ");
  if (name === "bridge") return JSON.stringify(await bridge.adaptServers(client, servers));
  const onNotification = ({ params }) => void say(`progress ${params?.progress};`);
  const ask = (method, params) => caller.request(client, servers[0].serverId, method, params, { onNotification });
  if (name === "list") {
    const { result } = await ask("tools/list", {});
    return result.tools.map((tool) => tool.name).join(" ");
  }
  const params = { name, arguments: JSON.parse(rest.join(" ")), _meta: { progressToken: "p" } };
  const { result, error } = await ask("tools/call", params);
  return JSON.stringify({ result: result?.structuredContent, failed: result?.isError, error: error?.code });
}

const text = (said) => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: said } });

acp
  .agent({ name: "typescript-mcp" })
  .onRequest("initialize", () => ({ protocolVersion: 1, agentCapabilities: { mcpCapabilities: { acp: true } } }))
  .onRequest("session/new", ({ params, client }) => {
    const sessionId = `s${sessions.size}`;
    sessions.set(sessionId, { servers: params.mcpServers, client });
    return { sessionId };
  })
  .onRequest("session/prompt", async ({ params, client }) => {
    const say = (said) => client.notify("session/update", { sessionId: params.sessionId, update: text(said) });
    await say(await answer(params.prompt[0].text, sessions.get(params.sessionId), say));
    return { stopReason: "end_turn" };
  })
  .onNotification("mcp/message", caller.handleNotification)
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
