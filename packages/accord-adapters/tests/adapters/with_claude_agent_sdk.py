"""Claude with the SDK's own program, and a model behind HTTP that follows a script."""

import asyncio
import json
import tempfile

import claude_agent_sdk as sdk
from interop.model.replies import Thinking, ToolCall, Words
from interop.model.server import ModelServer, Refused

from accord_adapters import claude_agent_sdk as adapter
from tests.adapters.script import Call, Refuse, Say, Think, Wait


class Models:
    """A server for each test, and a folder for what Claude keeps."""

    counts_tokens = True
    kept_in_a_turn = ('"id": "',)  # of the program's own transcript
    keeps_the_conversation = False

    def __init__(self, script):
        self._script = script
        self._refusals = {}
        self._server = ModelServer(reply=self._reply)
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

    def _reply(self, asked):
        body = self._server.bodies[-1]
        if not body.get("tools"):  # the program asks for a title, or whether it is online
            return [Words("Title")]
        if asked.text in self._refusals:  # the program repeats a request that was refused
            return self._refusals[asked.text]
        steps = self._script.answer(body["messages"])
        if isinstance(steps[0], Refuse):
            self._refusals[asked.text] = Refused(steps[0].status, {"type": "error", **steps[0].body})
            return self._refusals[asked.text]
        return self._said(steps)

    def _said(self, steps):
        for step in steps:
            match step:
                case Think(text):
                    yield Thinking(text)
                case Say(text):
                    yield Words(text)
                case Call(name, arguments):
                    yield ToolCall(f"mcp__own__{name}", arguments)
                case Wait():
                    self._script.over.wait()

    def __enter__(self):
        self._server.__enter__()
        return self

    def __exit__(self, *_):
        self._server.__exit__()
        self._folder.cleanup()

    def served(self, tools=(), **options):
        more = [it if isinstance(it, sdk.SdkMcpTool) else as_tool(it) for it in tools]
        own = [add, fail, publish, wait, write_todos]
        server = sdk.create_sdk_mcp_server("own", tools=[*own, *more])
        allowed = [f"mcp__own__{it.name}" for it in (*own, *more) if it is not publish]
        env = {
            "ANTHROPIC_BASE_URL": self._server.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CONFIG_DIR": self._folder.name,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }
        claude = sdk.ClaudeAgentOptions(
            mcp_servers={"own": server}, allowed_tools=allowed, tools=[], env=env, setting_sources=[], model="claude-x"
        )
        return adapter.serve(claude, **options)

    tool = staticmethod(adapter.tool)


def given(text):
    return {"content": [{"type": "text", "text": text}]}


def as_tool(function):
    async def call(_):
        return given(await function())

    return sdk.tool(function.__name__, function.__doc__, {})(call)


@sdk.tool("add", "Add two numbers.", {"left": int, "right": int})
async def add(arguments):
    return given(str(arguments["left"] + arguments["right"]))


@sdk.tool("fail", "Fail.", {"why": str})
async def fail(arguments):
    return {**given(arguments["why"]), "is_error": True}


@sdk.tool("publish", "Publish a text.", {"text": str})
async def publish(arguments):
    return given(f"Published {arguments['text']}")


@sdk.tool("wait", "Wait for ever.", {})
async def wait(_):
    await asyncio.Event().wait()


@sdk.tool("write_todos", "Write down the steps.", {"todos": list})
async def write_todos(arguments):
    return given(json.dumps(len(arguments["todos"])))
