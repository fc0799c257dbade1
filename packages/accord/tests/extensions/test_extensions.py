"""An extension as a class: declared, checked, handled, read and folded on both sides of a connection."""

import asyncio

import msgspec
import pytest

import accord
from accord import v1
from accord.extensions import installed_extensions, notice_of
from accord.session import updates


class Zones(accord.Model):
    zones: list[str] = msgspec.field(default_factory=list)


class Time(accord.Model):
    now: str


class TellTime(accord.Request[Time], method="_example.com/time"):
    session_id: str
    zone: str = "UTC"


class Ticked(accord.Notification, method="_example.com/ticked"):
    session_id: str
    number: int


class Alarm(accord.Model, tag_field="sessionUpdate", tag="_example.com/alarm"):
    at: str


class Clock(accord.Extension[Zones], name="example.com/clock"):
    """Tells the time."""

    messages = (TellTime, Ticked)
    updates = (Alarm,)
    zone = accord.MetaMember(str, "example.com", "zone")

    def __init__(self, *of):
        super().__init__(*of)
        self.alarms = []

    async def now(self, zone="UTC"):
        return (await self.request(TellTime(self.session_id, zone))).now

    def fold(self, update):
        if (alarm := self.read(update)) is not None:
            self.alarms.append(alarm.at)

    @classmethod
    def notice(cls, update):
        alarm = cls.read(update)
        return None if alarm is None else updates.Notice("info", f"It is {alarm.at}")


class Shout(accord.Extension[dict], name="example.com/shout"):
    """Reads an alarm as a message of the agent."""

    updates = (Alarm,)

    @staticmethod
    def translate(update):
        alarm = Shout.read(update)
        return (
            None if alarm is None else [updates.AgentMessageChunk.of("Now: "), updates.AgentMessageChunk.of(alarm.at)]
        )


def clock_agent(**options):
    agent = accord.Agent("clock", extensions={Clock: Zones(zones=["UTC", "CET"])}, **options)

    @agent.on(TellTime)
    def tell(request: TellTime) -> Time:
        return Time(f"noon in {request.zone}")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        clock = turn.session.extension(Clock)
        await turn.say(f"client {'has' if clock.offer is not None else 'lacks'} a clock")
        if clock.offer is not None:
            await clock.send(Alarm(at="six"))
            await clock.notify(Ticked(turn.session.id, 3))

    return agent


def plain_agent():
    agent = accord.Agent("plain")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("ok")

    return agent


@pytest.mark.parametrize("version", [1, 2])
async def test_both_sides_declare_an_extension_and_use_its_messages(version):
    client, ticked = accord.Client(extensions=[Clock]), asyncio.Queue()
    client.on(Ticked)(lambda tick: ticked.put_nowait(tick.number))
    async with accord.connect(clock_agent(), client, versions=(version,)) as remote:
        assert remote.capabilities.extension(Clock) == Zones(zones=["UTC", "CET"])
        assert remote.capabilities.has(Clock)
        session = await remote.new_session("/")
        clock = session.extension(Clock)
        assert clock is session.extension(Clock)
        assert (await clock.now("CET"), clock.offer.zones) == ("noon in CET", ["UTC", "CET"])
        assert (await session.prompt("Go")).text == "client has a clock"
        assert (clock.alarms, await ticked.get()) == (["six"], 3)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_request_that_the_other_side_did_not_declare_is_refused_here(version):
    async with accord.connect(plain_agent(), versions=(version,)) as remote:
        session = await remote.new_session("/")
        with pytest.raises(accord.CapabilityMissing, match=r'_example.com/time needs .* _meta\["example.com/clock"\]'):
            await session.extension(Clock).now()
        assert session.extension(Clock).offer is None


async def test_an_extension_that_cannot_be_made_fails_the_call_that_opens_a_session():
    class Broken(accord.Extension[dict], name="example.com/broken"):
        fold = Clock.fold

        def __init__(self, *_):
            raise LookupError("no clock on the wall")

    async with accord.connect(plain_agent(), accord.Client(extensions=[Broken])) as remote:
        with pytest.raises(LookupError, match="on the wall"):
            await remote.new_session("/")


async def test_an_agent_sends_no_update_that_the_client_did_not_declare():
    agent = accord.Agent("clock", extensions=[Clock])

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        try:
            await turn.session.extension(Clock).send(Alarm(at="six"))
        except accord.CapabilityMissing as missing:
            await turn.say(missing.capability)

    async with accord.connect(agent) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("Go")).text == '_meta["example.com/clock"]'
        assert session.state.unknown == []


@pytest.mark.parametrize("side", [lambda: accord.Agent("x"), lambda: accord.Client(), lambda: accord.Agent("x").on])
def test_a_handler_of_an_extension_that_its_side_does_not_declare_is_an_error(side):
    made = side()
    with pytest.raises(ValueError, match=r"TellTime belongs to the extension Clock.*extensions=\[Clock\]"):
        (made if callable(made) else made.on)(TellTime)(lambda _: Time("never"))


async def test_a_handler_at_a_remote_agent_needs_the_declaration_of_its_client_too():
    async with accord.connect(plain_agent()) as remote:
        with pytest.raises(ValueError, match="belongs to the extension Clock"):
            remote.on(Ticked)(print)


async def test_wrong_types_are_answered_as_for_messages_of_the_protocol():
    agent = clock_agent()
    async with accord.connect(agent, accord.Client(extensions=[Clock])) as remote:
        session = await remote.new_session("/")
        with pytest.raises(accord.PeerError) as refused:
            await remote.request_raw("_example.com/time", {"sessionId": session.id, "zone": 7})
        assert refused.value.code == -32602
        assert refused.value.data["path"] == "$.zone"


@pytest.mark.parametrize("said", [None, False, 7, "yes", {"zones": "UTC"}, {"zones": [1]}], ids=lambda said: repr(said))
async def test_a_declaration_of_another_shape_counts_as_none(said):
    agent = accord.Agent("odd", capabilities=lambda _: v1.AgentCapabilities(meta={"example.com/clock": said}))
    agent.on_prompt(lambda _: None)
    async with accord.connect(agent) as remote:
        assert remote.capabilities.extension(Clock) is None
        assert not remote.capabilities.has(Clock)


async def test_an_update_of_another_shape_stays_unknown():
    agent = accord.Agent("odd")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.send(accord.Unknown("_example.com/alarm", {"sessionUpdate": "_example.com/alarm", "at": 6}))

    async with accord.connect(agent, accord.Client(extensions=[Clock, Shout])) as remote:
        session = await remote.new_session("/")
        await session.prompt("Go")
        assert session.extension(Clock).alarms == []
        assert [it.tag for it in session.state.unknown] == ["_example.com/alarm"]


@pytest.mark.parametrize("version", [1, 2])
async def test_an_update_is_read_in_the_words_of_the_protocol_that_its_extension_gives(version):
    agent = accord.Agent("alarms", extensions=[Shout])

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.session.extension(Shout).send(Alarm(at="six"))

    async with accord.connect(agent, accord.Client(extensions=[Shout]), versions=(version,)) as remote:
        session = await remote.new_session("/")
        reply = session.prompt("Go", wire=True)
        wire = [update async for update in reply.wire()]
        assert (await reply).text == "Now: six"
        assert b"".join(wire).count(b"agent_message_chunk") == 2
        assert session.state.unknown == []
    async with accord.connect(agent, accord.Client(extensions=[Clock]), versions=(version,)) as remote:
        session = await remote.new_session("/")
        with pytest.raises(accord.PeerError):  # this client did not declare it
            await session.prompt("Go")


async def test_what_an_extension_gathers_begins_with_the_session_and_includes_its_replay():
    agent = accord.Agent("clock", store=accord.MemoryStore(), extensions=[Clock])

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.session.extension(Clock).send(Alarm(at=turn.text))

    client = accord.Client(extensions=[Clock])
    async with accord.connect(agent, client) as remote:
        first = await remote.new_session("/")
        for text in ("six", "seven"):
            await first.prompt(text)
        assert first.extension(Clock).alarms == ["six", "seven"]
    async with accord.connect(agent, client) as remote:
        assert (await remote.load(first.id, "/")).extension(Clock).alarms == ["six", "seven"]


def test_a_member_of_meta_is_written_and_read_with_its_type():
    update = updates.AgentMessageChunk(updates.TextContent("x"), meta=Clock.zone.meta("UTC"))
    assert update.meta == {"example.com": {"zone": "UTC"}}
    assert Clock.zone.of(update) == "UTC"
    for said in (None, {}, {"example.com": "UTC"}, {"example.com": {"zone": 7}}, {"example.com": {}}):
        assert Clock.zone.of(said) is None


def test_the_summary_of_an_extension_is_a_property():
    with pytest.raises(TypeError, match=r"Loud.summary must be a property, got a method; write @property above it"):

        class Loud(accord.Extension[None], name="example.com/loud"):
            def summary(self):
                return "loud"


def test_the_methods_of_an_extension_begin_with_an_underscore():
    class Loud(accord.Request[Time], method="example.com/loud"):
        text: str

    with pytest.raises(ValueError, match=r"Loud must begin with an underscore, got 'example.com/loud'"):

        class Wrong(accord.Extension[dict], name="example.com/wrong"):
            messages = (Loud,)


def test_an_update_of_an_extension_has_a_tag():
    with pytest.raises(TypeError, match=r"class Time\(..., tag_field='sessionUpdate', tag=...\)"):

        class Wrong(accord.Extension[dict], name="example.com/wrong"):
            updates = (Time,)


@pytest.mark.parametrize("given", [Clock, [Clock()], [7], [accord.Extension]])
def test_only_classes_of_extensions_are_taken(given):
    with pytest.raises(TypeError, match="extensions"):
        accord.Client(extensions=given)


def test_an_unknown_name_of_an_installed_extension_is_an_error_that_names_the_known():
    with pytest.raises(ValueError, match=r"no extension 'nonesuch' is installed; known are .*goals"):
        accord.Agent("x", extensions=["nonesuch"])


def test_our_own_extensions_are_installed_and_known_by_name():
    from accord.extensions import Goals

    assert Goals in installed_extensions()
    assert installed_extensions("goals") == [Goals]
    assert accord.Client(extensions=["goals"])._definition.extensions == {Goals: Goals.default_offer()}


def test_the_notice_of_an_update_comes_from_the_extension_that_knows_it():
    alarm = accord.Unknown("_example.com/alarm", {"sessionUpdate": "_example.com/alarm", "at": "six"})
    assert notice_of([Shout, Clock], alarm).title == "It is six"
    assert notice_of([Shout, Clock], updates.AgentMessageChunk.of("x")) is None


def test_an_object_without_a_session_folds_a_record_and_asks_nobody():
    clock = Clock()
    clock.fold(accord.Unknown("_example.com/alarm", {"sessionUpdate": "_example.com/alarm", "at": "six"}))
    assert clock.alarms == ["six"]
    with pytest.raises(TypeError, match=r"take it from a session, as session.extension\(Clock\)"):
        clock.session_id  # noqa: B018


@pytest.mark.parametrize("version", [1, 2])
async def test_a_proxy_has_an_extension_that_its_agent_lacks(version):
    proxy = accord.Proxy("clock", extensions=[Clock])

    @proxy.from_client(TellTime)
    async def tell(request: TellTime, hop: accord.Hop) -> Time:
        return Time(f"proxy time in {request.zone}")

    agent = accord.Agent("plain")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say(str(turn.client.capabilities.extension(Clock)))

    async with accord.connect(accord.chain(proxy, agent), versions=(version,)) as remote:
        session = await remote.new_session("/")
        assert await session.extension(Clock).now() == "proxy time in UTC"
        assert (await session.prompt("Go")).text == "None"  # the proxy handles nothing of it from the agent


@pytest.mark.parametrize("version", [1, 2])
async def test_a_proxy_declares_an_extension_to_the_agent_whose_messages_it_handles(version):
    proxy, ticks = accord.Proxy("clock", extensions=[Clock]), []

    @proxy.from_agent(Ticked)
    def ticked(tick: Ticked) -> None:
        ticks.append(tick.number)

    agent = clock_agent()
    async with accord.connect(accord.chain(proxy, agent), versions=(version,)) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("Go")).text == "client has a clock"
        assert ticks == [3]
        assert await session.extension(Clock).now() == "noon in UTC"


@pytest.mark.parametrize("version", [1, 2])
def test_threads_use_an_extension_without_async_on_both_sides(version):
    agent = accord.Agent("clock", extensions={Clock: Zones(zones=["UTC"])})

    @agent.on(TellTime)
    def tell(request: TellTime) -> Time:
        return Time(f"noon in {request.zone}")

    @agent.on_prompt
    def reply(turn: accord.sync.Turn) -> None:
        clock = turn.session.extension(Clock)
        clock.send(Alarm(at=str(clock.offer.zones)))
        clock.notify(Ticked(turn.session.id, 3))

    client = accord.Client(extensions=[Clock])
    with accord.sync.connect(agent, client, versions=(version,)) as remote:
        session = remote.new_session("/")
        clock = session.extension(Clock)
        assert (clock.now(zone="CET"), clock.offer.zones) == ("noon in CET", ["UTC"])
        session.prompt("When?").outcome()
        alarms = clock.alarms
        assert alarms == ["[]"]
        alarms.append("mine")
        assert session.extension(Clock).alarms == ["[]"]
        assert remote.extension(Clock).offer.zones == ["UTC"]
        with pytest.raises(AttributeError, match="later"):
            clock.later()
