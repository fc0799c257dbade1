// A message as code: a program that sends it again, and a test.

/** A Python program that sends this request or notification; `command` starts the agent. */
export function asPython(message, value, command) {
  return message.toAgent ? client(message, value, command) : agent(message, value);
}

/** A test that sends it, and expects an answer like the recorded one; `answer` is that message, if there is one. */
export function asTest(message, value, command, answer) {
  return message.toAgent ? clientTest(message, value, command, answer) : agentTest(message, value, answer);
}

function client(message, value, command) {
  return `${head(message)}

import accord

${constants(value, command)}

async def main() -> None:
    async with accord.connect(COMMAND) as remote:
${indent(sending(message, value, (call) => (message.kind === 1 ? `print(${call})` : call)), 8)}


accord.run(main())
`;
}

function clientTest(message, value, command, answer) {
  const failed = answer?.error !== undefined;
  const call = (it) => (message.kind !== 1 ? it : failed ? `with pytest.raises(accord.PeerError) as refused:\n    ${it}` : `answer = ${it}`);
  const expected = message.kind !== 1 || !answer ? "" : failed
    ? `\n    assert refused.value.code == ${literal(answer.error.code ?? 0)}`
    : `\n    assert ${expectation("answer", answer.result)}`;
  return `${head(message)}
${failed ? "\nimport pytest" : ""}
import accord

${constants(value, command)}

async def test_${name(value.method)}() -> None:
    async with accord.connect(COMMAND) as remote:
${indent(sending(message, value, call), 8)}${expected}
`;
}

/** The lines that open a session, if the message belongs to one, and send the message in it. */
function sending(message, value, use) {
  if (value.method === "initialize") return use("remote.peer.capabilities") + "  # connect has sent initialize";
  const hasSession = typeof value.params?.sessionId === "string";
  const params = value.params === undefined ? "" : hasSession ? ', {**PARAMS, "sessionId": session.id}' : ", PARAMS";
  const call = `await remote.peer.${message.kind === 1 ? "request_raw" : "notify_raw"}(${literal(value.method)}${params})`;
  return (hasSession ? 'session = await remote.new_session(".")\n' : "") + use(call);
}

function constants(value, command) {
  const params = value.params === undefined || value.method === "initialize" ? "" : `PARAMS = ${literal(value.params)}\n`;
  return `COMMAND = ${command?.length ? literal(command) : '["my-agent"]  # the trace does not name the command'}\n${params}`;
}

function agent(message, value) {
  return `${head(message)}

from accord.testing import ScriptedPeer

${script(message, value, "")}
# Name this file in place of an agent: accord run "go" -- python -m accord.testing FILE script
`;
}

function agentTest(message, value, answer) {
  const expected = message.kind !== 1 || !answer ? "" : answer.error === undefined
    ? `    assert ${expectation("answer", answer.result)}\n`
    : "";
  return `${head(message)}

import accord
from accord.testing import ScriptedPeer, script_command

${script(message, value, expected, answer?.error)}

async def test_${name(value.method)}() -> None:
    async with accord.connect(script_command(script)) as remote:  # give connect the client that you test
        session = await remote.new_session(".")
        assert (await session.prompt("go")).stop_reason == "end_turn"
`;
}

/** A scripted agent that sends the message in its first turn. */
function script(message, value, expected, error) {
  const session = typeof value.params?.sessionId === "string" ? value.params.sessionId : "s1";
  const params = value.params === undefined ? "" : ", PARAMS";
  const method = literal(value.method);
  const lines = message.kind !== 1 ? `    peer.tell(${method}${params})\n` : error === undefined
    ? `    answer = await peer.request(${method}${params})\n${expected}`
    : `    await peer.expect_error(peer.call(${method}${params}), ${literal(error.code ?? 0)})\n`;
  return `${value.params === undefined ? "" : `PARAMS = ${literal(value.params)}\n\n`}
async def script(peer: ScriptedPeer) -> None:
    peer.answer(await peer.expect("initialize"), {"protocolVersion": 1, "agentCapabilities": {}})
    peer.answer(await peer.expect("session/new"), {"sessionId": ${literal(session)}})
    prompt = await peer.expect("session/prompt")
${lines}    peer.answer(prompt, {"stopReason": "end_turn"})
    await peer.expect_end()
`;
}

/** What an answer like the recorded one has: its state as it was, and else the same members. */
function expectation(variable, result) {
  if (result === null || typeof result !== "object") return `${variable} == ${literal(result ?? null)}`;
  for (const member of ["stopReason", "outcome"]) {
    if (result[member] !== undefined) return `${variable}[${literal(member)}] == ${literal(result[member])}`;
  }
  return `${variable}.keys() >= ${Object.keys(result).length ? `{${Object.keys(result).map(literal).join(", ")}}` : "set()"}`;
}

const head = (message) => `"""${JSON.stringify(`${message.what || "message"}, recorded as message ${message.number}`).slice(1, -1)}."""`;
const indent = (text, by) => text.split("\n").map((line) => " ".repeat(by) + line).join("\n");
const name = (method) => method.replaceAll(/[^A-Za-z0-9]+/g, "_").replaceAll(/^_+|_+$/g, "").toLowerCase() || "message";

/** A JSON value as Python writes it. A JSON string is a Python string, too. */
export function literal(value, depth = 0) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const parts = isList ? value.map((item) => literal(item, depth + 1)) : Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${literal(item, depth + 1)}`);
  const [left, right] = isList ? ["[", "]"] : ["{", "}"];
  const short = left + parts.join(", ") + right;
  if (short.length <= 80 && !short.includes("\n")) return short;
  const pad = " ".repeat(4 * (depth + 1));
  return `${left}\n${parts.map((part) => `${pad}${part},\n`).join("")}${" ".repeat(4 * depth)}${right}`;
}
