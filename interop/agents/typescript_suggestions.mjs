// An agent that suggests edits, with the frozen copy of the proposal that the TypeScript SDK keeps.
// It wants whole texts, counts in 16-bit units, and suggests to put what it was told before the cursor.
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import * as nes from "@agentclientprotocol/sdk/experimental/nes";

const texts = new Map();
const told = [];
let ids = 0;

nes
  .agent({ name: "suggestions" })
  .onRequest("initialize", ({ params }) => {
    told.push(`offers ${params.clientCapabilities?.positionEncodings}`);
    const document = { didOpen: {}, didChange: { syncKind: "full" }, didClose: {}, didSave: {}, didFocus: {} };
    const context = { editHistory: { maxCount: 1 } };
    const agentCapabilities = { positionEncoding: "utf-16", nes: { events: { document }, context } };
    return { protocolVersion: 1, agentCapabilities };
  })
  .onRequest("nes/start", ({ params }) => {
    told.push(`start ${params.workspaceUri}`);
    return { sessionId: "nes-1" };
  })
  .onNotification("document/didOpen", ({ params }) => void texts.set(params.uri, params.text))
  .onNotification("document/didChange", ({ params }) => void texts.set(params.uri, params.contentChanges[0].text))
  .onNotification("document/didSave", () => void told.push("save"))
  .onNotification("document/didFocus", ({ params }) => void told.push(`focus ${params.position.character}`))
  .onNotification("document/didClose", ({ params }) => void texts.delete(params.uri))
  .onRequest("nes/suggest", ({ params }) => {
    const line = texts.get(params.uri).split("\n")[params.position.line];
    const before = line.slice(0, params.position.character);
    const range = { start: params.position, end: params.position };
    const newText = `[${[before, params.context?.editHistory?.length, ...told].join(";")}]`;
    const uri = params.uri;
    return {
      suggestions: [
        { kind: "edit", id: `s${ids++}`, uri, edits: [{ range, newText }] },
        { kind: "jump", id: `s${ids++}`, uri, position: { line: 0, character: 0 } },
      ],
    };
  })
  .onNotification("nes/accept", ({ params }) => void told.push(`accept ${params.id}`))
  .onNotification("nes/reject", ({ params }) => void told.push(`reject ${params.id} ${params.reason}`))
  .onRequest("nes/close", () => {})
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
