"""The Rust SDK's conductor and proxies, and ours: each under the other, nested, in both versions, with MCP over ACP."""

import asyncio
import shlex
import sys

import pytest
from benchmarks.build import Unavailable
from interop.peers import conductor

import accord
from accord.testing import ScriptedPeer
from accord.transports.process_transport import ProcessTransport
from tests.waiting import DEADLINE

pytestmark = [pytest.mark.rust, pytest.mark.timeout(180)]

OURS = [sys.executable, "-m", "accord", "conduct"]

SHOUT = """
import msgspec
import accord

proxy = accord.Proxy("shout")


@proxy.updates
def shout(update):
    if not hasattr(getattr(update, "content", None), "text"):
        return update
    loud = msgspec.structs.replace(update.content, text=update.content.text.upper())
    return msgspec.structs.replace(update, content=loud)


proxy.run()
"""

SUMS = """
import accord

proxy = accord.Proxy("sums")


@proxy.tools
def add(left: int, right: int) -> int:
    "The sum."
    return left + right


proxy.run()
"""

CALLER = """
import json
import accord
from accord import v1

agent = accord.Agent("caller", {capabilities})


@agent.on_prompt
async def call(turn):
    name, _, arguments = turn.text.partition(" ")
    if name == "say":
        return await turn.say(arguments)
    if name == "list":
        return await turn.say(" ".join(sorted(tool.qualified_name for tool in await turn.session.mcp.tools())))
    await turn.say((await turn.session.mcp.call(turn, name, json.loads(arguments))).text)


agent.run()
"""

ECHO = """
import asyncio
import accord

agent = accord.Agent("echo", versions=(1, 2))


@agent.on_prompt
async def echo(turn):
    await turn.say(turn.text)


agent.run()
"""


class Chains:
    """Chains of programs under one conductor or the other, each component as one argument."""

    def __init__(self, folder, rust, rust_proxy):
        self.rust = [rust, "agent"]
        self.nested_rust = lambda *components: shlex.join([rust, "proxy", *components])
        self.nested_ours = lambda *components: shlex.join([*OURS, "--as-proxy", *components])
        self.theirs = lambda name: shlex.join([rust_proxy, name])
        self._folder = folder

    def ours(self, name, code):
        """A component that is a program of ours."""
        path = self._folder / f"{name}.py"
        path.write_text(code)
        return shlex.join([sys.executable, str(path)])

    def shout(self):
        return self.ours("shout", SHOUT)

    def echo(self):
        return self.ours("echo", ECHO)

    def caller(self, *, takes_acp):
        """An agent that calls the tools that the prompt names."""
        capabilities = "" if takes_acp else "capabilities=lambda _: v1.AgentCapabilities()"
        return self.ours("caller", CALLER.format(capabilities=capabilities))


@pytest.fixture
def chains(tmp_path):
    try:
        return Chains(tmp_path, *conductor())
    except Unavailable as missing:
        pytest.skip(str(missing))


async def said(command, *prompts, version=1, servers=()):
    """What the chain answers to each prompt."""
    async with asyncio.timeout(DEADLINE), accord.connect(command, versions=(version,)) as remote:
        assert remote.version == version
        session = await remote.new_session("/", mcp_servers=servers)
        return [(await session.prompt(prompt)).text for prompt in prompts]


@pytest.mark.parametrize("version", [1, 2])
async def test_our_proxies_run_under_their_conductor(chains, version):
    command = [*chains.rust, chains.shout(), chains.theirs("pass"), chains.shout(), chains.echo()]
    assert await said(command, "hello", version=version) == ["HELLO"]


@pytest.mark.parametrize("version", [1, 2])
async def test_their_proxies_run_under_ours(chains, version):
    command = [*OURS, chains.theirs("arrow"), chains.shout(), chains.theirs("arrow"), chains.echo()]
    assert await said(command, "hello", version=version) == [">>HELLO"]


@pytest.mark.parametrize("version", [1, 2])
async def test_each_conductor_is_a_component_of_the_other(chains, version):
    theirs = chains.nested_rust(chains.theirs("arrow"), chains.shout())
    assert await said([*OURS, theirs, chains.echo()], "hello", version=version) == [">HELLO"]
    ours = chains.nested_ours(chains.shout(), chains.theirs("arrow"))
    assert await said([*chains.rust, ours, chains.echo()], "hello", version=version) == [">HELLO"]


@pytest.mark.parametrize("outer", ["theirs", "ours"])
async def test_an_empty_conductor_is_a_component_of_the_other(chains, outer):
    inner = chains.nested_ours() if outer == "theirs" else chains.nested_rust()
    command = [*(chains.rust if outer == "theirs" else OURS), inner, chains.echo()]
    assert await said(command, "hello") == ["hello"]


@pytest.mark.parametrize("outer", ["theirs", "ours"])
async def test_updates_stay_in_order_through_both_kinds_of_proxy(chains, outer):
    counting = ECHO.replace("await turn.say(turn.text)", "[await turn.say(f'{n} ') for n in range(500)]")
    components = [chains.theirs("pass"), chains.shout(), chains.ours("counting", counting)]
    command = [*(chains.rust if outer == "theirs" else OURS), *components]
    [text] = await said(command, "go")
    assert text == "".join(f"{number} " for number in range(500))


@pytest.mark.parametrize("outer", ["theirs", "ours"])
async def test_a_cancelled_turn_ends_through_both_kinds_of_proxy(chains, outer):
    waiting = ECHO.replace("await turn.say(turn.text)", "await turn.say('here')\n    await asyncio.Event().wait()")
    command = [*(chains.rust if outer == "theirs" else OURS), chains.theirs("pass"), chains.shout()]
    command.append(chains.ours("waiting", waiting))
    async with asyncio.timeout(DEADLINE), accord.connect(command) as remote:
        reply = (await remote.new_session("/")).prompt("go")
        async for _ in reply:
            break
        assert (await reply.cancel()).stop_reason == "cancelled"


@pytest.mark.parametrize("outer", ["theirs", "ours"])
async def test_errors_and_results_pass_unchanged_through_both_kinds_of_proxy(chains, outer, tmp_path):
    (tmp_path / "script.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    answers = {'initialize': {'result': {'protocolVersion': 1, 'new': [1, None]}},\n"
        "               '_x/fail': {'error': {'code': 7, 'message': 'no', 'data': {'deep': [1]}}},\n"
        "               '_x/null': {'result': None}}\n"
        "    if 'id' in asked:\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], **answers[asked['method']]}), flush=True)\n"
    )
    script = shlex.join([sys.executable, str(tmp_path / "script.py")])
    conducting = chains.rust if outer == "theirs" else [*OURS, "--no-bridge"]
    command = [*conducting, chains.theirs("pass"), chains.shout(), script]
    async with ScriptedPeer(ProcessTransport(command), deadline=DEADLINE) as client:
        assert await client.request("initialize", {"protocolVersion": 1}) == {"protocolVersion": 1, "new": [1, None]}
        error = await client.expect_error(client.call("_x/fail", {}))
        assert error == {"code": 7, "message": "no", "data": {"deep": [1]}}
        assert await client.expect_result(client.call("_x/null", {})) is None


# MCP over ACP

ADD = 'add {"left": 2, "right": 3}'


def product(left: int, right: int) -> int:
    """The product."""
    return left * right


PRODUCT = 'product {"left": 2, "right": 3}'


@pytest.mark.parametrize("takes_acp", [True, False])
async def test_tools_of_their_proxy_reach_our_agent_and_over_our_bridge_any_agent(chains, takes_acp):
    command = [*OURS, chains.theirs("tools"), chains.caller(takes_acp=takes_acp)]
    listed, added = await said(command, "list", ADD)
    assert listed == "rust/add"
    assert "5" in added


@pytest.mark.parametrize("takes_acp", [True, False])
async def test_tools_of_our_proxy_reach_an_agent_under_their_conductor(chains, takes_acp):
    command = [*chains.rust, chains.ours("sums", SUMS), chains.theirs("pass"), chains.caller(takes_acp=takes_acp)]
    assert await said(command, "list", ADD) == ["sums/add", "5"]


async def test_tools_of_our_proxy_and_client_reach_an_agent_through_their_bridge(chains):
    components = [chains.ours("sums", SUMS), chains.theirs("polyfill"), chains.caller(takes_acp=False)]
    servers = [accord.tools(product, name="client")]
    assert await said([*chains.rust, *components], "list", ADD, PRODUCT, servers=servers) == [
        "client/product sums/add",
        "5",
        "6",
    ]
    # Their polyfill under our conductor: it has done all before our bridge sees it.
    assert await said([*OURS, *components], ADD, PRODUCT, servers=servers) == ["5", "6"]


async def test_all_components_lend_tools_at_the_same_time(chains):
    components = [chains.ours("sums", SUMS), chains.theirs("tools"), chains.caller(takes_acp=False)]
    servers = [accord.tools(product, name="client")]
    listed, ours, theirs, clients = await said(
        [*OURS, *components], "list", f"sums/{ADD}", f"rust/{ADD}", PRODUCT, servers=servers
    )
    assert listed == "client/product rust/add sums/add"
    assert (ours, clients) == ("5", "6")
    assert "5" in theirs
