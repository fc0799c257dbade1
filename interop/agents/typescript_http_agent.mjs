// An agent of version 2 made of the TypeScript SDK that takes MCP servers over HTTP only, and uses them with the
// official TypeScript SDK of MCP. ACP_SDK and MCP_SDK are the folders of their compiled modules.
// A prompt is the name of a tool and its arguments as JSON; `list` lists the tools.
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const load = (folder, module) => import(pathToFileURL(`${folder}/${module}`).href);
const { ndJsonStream } = await load(process.env.ACP_SDK, "v1/stable/acp.js");
const { agent } = await load(process.env.ACP_SDK, "v2/stable/acp.js");
const { Client } = await load(process.env.MCP_SDK, "client/index.js");
const { StreamableHTTPClientTransport } = await load(process.env.MCP_SDK, "client/streamableHttp.js");

const servers = new Map();
let count = 0;

async function open({ params }) {
  for (const { type, name, url, headers } of params.mcpServers ?? []) {
    if (type !== "http") throw new Error(`this agent takes no server of the type ${type}`);
    const requestInit = { headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])) };
    const client = new Client({ name: "typescript-http", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
    servers.set(name, client);
  }
  return { sessionId: "s1" };
}

async function answer(text) {
  if (text === "list") {
    const found = [];
    for (const [name, client] of servers) {
      for (const tool of (await client.listTools()).tools) found.push(`${name}/${tool.name}`);
    }
    return found.sort().join(" ");
  }
  const [, server, tool, given] = text.match(/^(\w+)\/(\w+) (.*)$/);
  const options = { onprogress: (progress) => steps.push(progress.progress) };
  const steps = [];
  const result = await servers.get(server).callTool({ name: tool, arguments: JSON.parse(given) }, undefined, options);
  const said = result.content.map((block) => block.text).join(" ");
  return `${result.isError ? "error: " : ""}${said}${steps.length ? ` after ${steps.join(",")}` : ""}`;
}

async function prompt({ params, client }) {
  const messageId = `m${++count}`;
  const tell = (update) => client.notify("session/update", { sessionId: "s1", update });
  setImmediate(async () => {
    await tell({ sessionUpdate: "user_message", messageId, content: params.prompt });
    await tell({ sessionUpdate: "state_update", state: "running" });
    const text = await answer(params.prompt[0].text).catch((error) => `failed: ${error.message}`);
    await tell({ sessionUpdate: "agent_message", messageId: `a${count}`, content: [{ type: "text", text }] });
    await tell({ sessionUpdate: "state_update", state: "idle", stopReason: "end_turn" });
  });
  return { messageId };
}

agent({ name: "typescript-http" })
  .onRequest("initialize", () => ({
    protocolVersion: 2,
    info: { name: "typescript-http", version: "1" },
    capabilities: { session: { prompt: {}, mcp: { http: {} } } },
    authMethods: [],
  }))
  .onRequest("session/new", open)
  .onRequest("session/prompt", prompt)
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
