// The TypeScript SDK as a client that lends an MCP server over ACP, with our agent.
//   typescript_mcp_client.mjs PROMPT [PROMPT ...] -- AGENT [ARGUMENT ...]
// ACP_SDK is the folder of the SDK's compiled modules. It prints what the agent said to each prompt, as lines of JSON.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const load = (module) => import(pathToFileURL(`${process.env.ACP_SDK}/${module}`).href);
const acp = await load("v1/unstable/acp.js");

const words = process.argv.slice(2);
const at = words.indexOf("--");
const [command, ...options] = words.slice(at + 1);
const agent = spawn(command, options, { stdio: ["pipe", "pipe", "inherit"] });

const number = { type: "integer" };
const tool = {
  name: "add",
  description: "The sum",
  inputSchema: { type: "object", properties: { left: number, right: number }, required: ["left", "right"] },
};
const cached = { resultType: "complete", ttlMs: 0, cacheScope: "private" };

async function serve({ method, params, notify }) {
  switch (method) {
    case "server/discover": {
      const serverInfo = { name: "typescript", version: "1" };
      const supportedVersions = [acp.MCP_PROTOCOL_VERSION];
      return { result: { ...cached, supportedVersions, capabilities: { tools: {} }, serverInfo } };
    }
    case "tools/list":
      return { result: { ...cached, tools: [tool] } };
    case "tools/call": {
      if (params.name !== "add") return { error: { code: -32602, message: `no tool ${params.name}` } };
      const progressToken = params._meta?.progressToken;
      if (progressToken !== undefined) await notify("notifications/progress", { progressToken, progress: 1, total: 2 });
      const sum = Number(params.arguments.left) + Number(params.arguments.right);
      return { result: { resultType: "complete", content: [{ type: "text", text: String(sum) }] } };
    }
    default:
      return { error: { code: -32601, message: `no method ${method}` } };
  }
}

const provider = new acp.McpOverAcpProvider();
const app = acp.client({ name: "typescript-mcp" }).onRequest("mcp/message", provider.handleRequest);
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

await app.connectWith(stream, async (context) => {
  await context.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const registration = provider.registerServer(context, { name: "sums", handler: serve });
  const session = await context.buildSession(process.cwd()).withMcpServer(registration.declaration).start();
  for (const prompt of words.slice(0, at)) {
    session.prompt(prompt);
    const said = await session.readText();
    console.log(JSON.stringify(said));
  }
});
agent.kill();
