"""Bad input to an agent's methods: each gets the protocol's answer, and the agent goes on.

The clause behind each row stands beside it; where the pages say nothing, so does the row.
"""

import pytest

from accord import Agent

TEXT = [{"type": "text", "text": "hi"}]
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
EMBEDDED = {"type": "resource", "resource": {"uri": "file:///a", "text": "hi"}}
LINK = {"type": "resource_link", "name": "a", "uri": "file:///a"}


class Row:
    """A call that is wrong, and the error that answers it. SESSION in its params stands for one that is open."""

    def __init__(self, name, call, params, code, **data):
        self.name, self.call, self.params, self.code, self.data = name, call, params, code, data


SESSION = "SESSION"

ROWS = [
    # session-setup, Working Directory: "MUST be an absolute path"
    Row("a relative cwd", "session/new", {"cwd": "project", "mcpServers": []}, -32602, path="$.cwd"),
    Row("an empty cwd", "session/new", {"cwd": "", "mcpServers": []}, -32602, path="$.cwd"),
    Row("a NUL in cwd", "session/new", {"cwd": "/a\0b", "mcpServers": []}, -32602, path="$.cwd"),
    Row("a cwd that is no text", "session/new", {"cwd": "/a\ud83d", "mcpServers": []}, -32602, path="$.cwd"),
    Row("a missing cwd", "session/new", {"mcpServers": []}, -32602),
    Row("a cwd that is no string", "session/new", {"cwd": 3, "mcpServers": []}, -32602),
    # schema, NewSessionRequest: `mcpServers` is required
    Row("missing MCP servers", "session/new", {"cwd": "/a"}, -32602),
    # session-setup, Additional Workspace Roots: each entry "MUST be an absolute path"
    Row(
        "a relative additional folder",
        "session/new",
        {"cwd": "/a", "mcpServers": [], "additionalDirectories": ["/b", "c"]},
        -32602,
        path="$.additionalDirectories[1]",
    ),
    Row(
        "a NUL in an additional folder",
        "session/new",
        {"cwd": "/a", "mcpServers": [], "additionalDirectories": ["/b\0"]},
        -32602,
        path="$.additionalDirectories[0]",
    ),
    Row(
        "an additional folder that is no string",
        "session/new",
        {"cwd": "/a", "mcpServers": [], "additionalDirectories": [3]},
        -32602,
    ),
    # schema, ErrorCode: -32002 is for what is not found; the TypeScript SDK names the session in its data
    Row("a prompt in an unknown session", "session/prompt", {"sessionId": "?", "prompt": TEXT}, -32002, sessionId="?"),
    Row("a mode of an unknown session", "session/set_mode", {"sessionId": "?", "modeId": "a"}, -32002, sessionId="?"),
    Row(
        "an option of an unknown session",
        "session/set_config_option",
        {"sessionId": "?", "configId": "mode", "value": "a"},
        -32002,
        sessionId="?",
    ),
    Row("closing an unknown session", "session/close", {"sessionId": "?"}, -32002, sessionId="?"),
    # initialization, Prompt capabilities: text and links are the baseline, the rest has to be declared
    Row(
        "an image",
        "session/prompt",
        {"sessionId": SESSION, "prompt": [IMAGE]},
        -32602,
        path="$.prompt[0]",
        type="image",
    ),
    Row("audio", "session/prompt", {"sessionId": SESSION, "prompt": [AUDIO]}, -32602, path="$.prompt[0]", type="audio"),
    Row(
        "an embedded resource",
        "session/prompt",
        {"sessionId": SESSION, "prompt": [*TEXT, EMBEDDED]},
        -32602,
        path="$.prompt[1]",
        type="resource",
    ),
    Row(
        "content of an unknown kind",
        "session/prompt",
        {"sessionId": SESSION, "prompt": [{"type": "hologram"}]},
        -32602,
        path="$.prompt[0]",
        type="hologram",
    ),
    Row("an empty prompt", "session/prompt", {"sessionId": SESSION, "prompt": []}, -32602, path="$.prompt"),
    Row("a missing prompt", "session/prompt", {"sessionId": SESSION}, -32602),
    Row("a prompt that is a string", "session/prompt", {"sessionId": SESSION, "prompt": "hi"}, -32602),
    Row("text without text", "session/prompt", {"sessionId": SESSION, "prompt": [{"type": "text"}]}, -32602),
    Row("a prompt without a session", "session/prompt", {"prompt": TEXT}, -32602),
    # session-modes: "Must be one of the modes listed in `availableModes`"
    Row("an unknown mode", "session/set_mode", {"sessionId": SESSION, "modeId": "?"}, -32602, modeId="?"),
    # session-config-options: "Must be one of the values listed in the option's `options` array"
    Row(
        "an unknown option",
        "session/set_config_option",
        {"sessionId": SESSION, "configId": "?", "value": "a"},
        -32602,
        configId="?",
    ),
    Row(
        "an unknown value",
        "session/set_config_option",
        {"sessionId": SESSION, "configId": "mode", "value": "?"},
        -32602,
        configId="mode",
        value="?",
    ),
    Row(
        "a boolean for a select option",
        "session/set_config_option",
        {"sessionId": SESSION, "configId": "mode", "type": "boolean", "value": True},
        -32602,
        configId="mode",
        value=True,
    ),
    Row(
        "an option that this client cannot show",
        "session/set_config_option",
        {"sessionId": SESSION, "configId": "web", "type": "boolean", "value": False},
        -32602,
        configId="web",
    ),
    Row("loading an unknown session", "session/load", {"sessionId": "?", "cwd": "/a", "mcpServers": []}, -32002),
    Row("resuming an unknown session", "session/resume", {"sessionId": "?", "cwd": "/a"}, -32002, sessionId="?"),
    Row("loading into a relative cwd", "session/load", {"sessionId": "?", "cwd": "a", "mcpServers": []}, -32602),
    Row("logging out of what has no login", "logout", {}, -32601, method="logout"),
    Row("authenticating where nobody need", "authenticate", {"methodId": "?"}, -32601, method="authenticate"),
    # initialization: the connection is initialized once
    Row("a second initialize", "initialize", {"protocolVersion": 1}, -32600),
]


@pytest.fixture
def agent():
    agent = Agent("strict")

    @agent.on_session
    async def opened(session):
        await session.modes.offer(["ask", "code"])
        await session.config.offer("web", "Web search")

    @agent.on_prompt
    async def answer(turn):
        await turn.say("hello")

    return agent


async def open_session(client):
    return (await client.request("session/new", {"cwd": "/project", "mcpServers": []}))["sessionId"]


@pytest.mark.requirement(
    "session.roots.none-dropped",
    "session.roots.malformed-refused",
    "session.roots.malformed-code",
    "config.set.invalid-refused",
)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_a_wrong_call_is_refused_and_the_agent_goes_on(scripted, agent, row):
    async with scripted(agent) as client:
        session = await open_session(client)
        params = {key: session if value is SESSION else value for key, value in row.params.items()}
        error = await client.expect_error(client.call(row.call, params), row.code)
        assert {**error.get("data", {}), **row.data} == error.get("data", {})
        prompt = client.call("session/prompt", {"sessionId": session, "prompt": TEXT})
        assert (await client.expect("session/update"))["params"]["update"]["content"]["text"] == "hello"
        assert await client.expect_result(prompt) == {"stopReason": "end_turn"}


@pytest.mark.requirement("prompt.content.agent-takes-text", "prompt.content.agent-takes-links")
async def test_text_and_links_are_always_taken(scripted, agent):
    async with scripted(agent) as client:
        session = await open_session(client)
        prompt = client.call("session/prompt", {"sessionId": session, "prompt": [*TEXT, LINK]})
        await client.expect("session/update")
        assert await client.expect_result(prompt) == {"stopReason": "end_turn"}


@pytest.mark.requirement("capabilities.agent-states-its-own")
@pytest.mark.parametrize(("kind", "block"), [("image", IMAGE), ("audio", AUDIO), ("embedded", EMBEDDED)])
async def test_what_an_agent_accepts_is_declared_and_taken(serve, scripted, kind, block):
    agent = Agent("open", accepts=[kind])
    agent.on_prompt(lambda turn: None)  # noqa: ARG005
    async with serve(agent) as editor:
        declared = editor.agent.agent_capabilities.prompt_capabilities
        names = {"image": declared.image, "audio": declared.audio, "embedded": declared.embedded_context}
        assert [name for name, is_declared in names.items() if is_declared] == [kind]
    async with scripted(agent) as client:
        session = await open_session(client)
        prompt = client.call("session/prompt", {"sessionId": session, "prompt": [block]})
        assert await client.expect_result(prompt) == {"stopReason": "end_turn"}


def test_an_agent_accepts_nothing_else():
    with pytest.raises(ValueError, match="hologram"):
        Agent("wrong", accepts=["hologram"])


@pytest.mark.requirement("auth.required-code")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/new", {"cwd": "/a", "mcpServers": []}),
        ("session/new", {"cwd": "not even right", "mcpServers": []}),
        ("session/prompt", {"sessionId": "?", "prompt": TEXT}),
    ],
    ids=["a session", "a wrong session", "a prompt"],
)
async def test_what_needs_a_login_is_refused_before_anything_else(scripted, agent, method, params):
    agent.login("account", "Account")(lambda: None)
    async with scripted(agent) as client:
        await client.expect_error(client.call(method, params), -32000)


@pytest.mark.requirement("initialize.no-session-before")
async def test_nothing_is_done_before_initialize(scripted, agent):
    async with scripted(agent, initialize=False) as client:
        await client.expect_error(client.call("session/new", {"cwd": "/a", "mcpServers": []}), -32600)


@pytest.mark.requirement(
    "initialize.version.agent-echoes-supported",
    "initialize.version.agent-answers-latest",
    "initialize.agent-states-version",
    "initialize.agent-states-info",
)
@pytest.mark.parametrize("version", [0, 1, 2, 65535])
async def test_whatever_version_is_asked_for_an_agent_of_version_1_speaks_that(scripted, version):
    agent = Agent("strict", versions=(1,))
    agent.on_prompt(lambda _: None)
    async with scripted(agent, initialize=False) as client:
        answer = await client.request("initialize", {"protocolVersion": version})
        assert answer["protocolVersion"] == 1
        assert answer["agentInfo"] == {"name": "strict", "version": "0"}
