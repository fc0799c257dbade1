"""Questions of an agent's reach the user, safely, and answers come back right or not at all."""

import asyncio
import os
import re
import struct
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

import accord
from accord import v1
from accord.printable import columns
from accord.services.elicitation_service import Elicitation, FormQuestion, LinkQuestion
from accord.services.permission_question import PermissionQuestion, must_be_judgeable
from accord.services.terminal_user import TerminalUser, ask_permission, consider_link, fill_in
from accord.services.url_to_visit import UrlToVisit
from accord.session import ToolCallState
from tests.posix import fcntl, termios, tty

SCHEMA = v1.ElicitationSchema(
    {
        "name": v1.StringPropertySchema(title="Project name", min_length=2),
        "port": v1.IntegerPropertySchema(minimum=1024, default=3000),
        "logging": v1.BooleanPropertySchema(default=True),
        "colors": v1.MultiSelectPropertySchema(v1.StringMultiSelectItems(["red", "green"]), min_items=1),
    },
    ["name"],
)


def form(session, schema=SCHEMA):
    return v1.ElicitationFormMode("Please fill in", session.id, requested_schema=schema)


def link(session, url="https://example.com/connect?id=1", elicitation_id="e1"):
    return v1.ElicitationUrlMode("Please sign in", session.id, elicitation_id=v1.ElicitationId(elicitation_id), url=url)


async def refused(awaitable):
    with pytest.raises(accord.PeerError) as caught:
        await awaitable
    return caught.value.code


@pytest.mark.requirement(
    "elicitation.answer.action", "elicitation.answer.dismissed-is-cancel", "elicitation.answer.own-action-underscore"
)
@pytest.mark.parametrize(
    ("filled", "answer"),
    [
        ({"name": "ok"}, v1.ElicitationAcceptAction({"name": "ok"})),
        (False, v1.ElicitationDeclineAction()),
        (None, v1.ElicitationCancelAction()),
    ],
)
async def test_a_form_is_accepted_declined_or_cancelled(session, lend, filled, answer):
    async with lend(Elicitation(lambda _: filled), sessions=[session]) as client:
        assert await client.request(form(session)) == answer


@pytest.mark.requirement("elicitation.form.validated", "elicitation.form.defaults-filled")
async def test_what_does_not_fit_is_asked_again_with_what_is_wrong(session, lend):
    asked = []

    async def fill(question):
        asked.append(question)
        return {"name": "x", "port": 80} if len(asked) == 1 else {"name": "xy", "port": 8080}

    async with lend(Elicitation(fill), sessions=[session]) as client:
        answer = await client.request(form(session))
    assert answer.content == {"name": "xy", "port": 8080}
    assert asked[0].content == {"port": 3000, "logging": True}
    assert asked[1].content == {"name": "x", "port": 80}
    assert set(asked[1].problems) == {"name", "port"}


async def test_a_function_that_gives_the_same_wrong_answer_is_not_asked_for_ever(session, lend, within):
    async with lend(Elicitation(lambda _: {"name": ""}), sessions=[session]) as client:
        assert await within(refused(client.request(form(session)))) == -32603


@pytest.mark.requirement("elicitation.declares-a-mode", "elicitation.undeclared-mode-code")
@pytest.mark.requirement("elicitation.mode.unknown-not-shown")
async def test_what_is_declared_is_what_there_is_a_function_for(session, lend):
    for service, declared, missing in (
        (Elicitation(lambda _: None), "form", link(session)),
        (Elicitation(visit=lambda _: None), "url", form(session)),
    ):
        async with lend(service, sessions=[session]) as client:
            assert client.capabilities.has(f"elicitation.{declared}")
            with pytest.raises(accord.CapabilityMissing):
                await client.request(missing)
            assert await refused(client.request(missing, force=True)) == -32602
            odd = {"sessionId": session.id, "mode": "_video", "message": "?"}
            assert await refused(client.request_raw("elicitation/create", odd)) == -32602
    assert Elicitation().declare(v1.ClientCapabilities()) == v1.ClientCapabilities()


async def test_what_the_form_did_not_ask_for_is_not_passed_on(session, lend):
    async with lend(Elicitation(lambda _: {"name": "ok", "apiKey": "s3cret"}), sessions=[session]) as client:
        assert (await client.request(form(session))).content == {"name": "ok"}


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        (v1.ElicitationSchema({"apiKey": v1.StringPropertySchema()}, ["apiKey"]), "secrets"),
        (v1.ElicitationSchema({"x": v1.StringPropertySchema(title="Your password")}), "secrets"),
        (v1.ElicitationSchema({"x": v1.StringPropertySchema(enum=["a"] * 8_000)}), "at most 5,000"),
        (v1.ElicitationSchema({str(n): v1.BooleanPropertySchema() for n in range(300)}), "at most 200"),
        (v1.ElicitationSchema(title="x" * 300_000), "at most 200,000"),
    ],
    ids=["a key", "a password", "choices", "fields", "text"],
)
async def test_a_form_that_must_not_be_shown_is_refused_without_asking_the_user(session, lend, schema, word):
    asked = []
    async with lend(Elicitation(asked.append), sessions=[session]) as client:
        with pytest.raises(accord.PeerError, match=word) as caught:
            await client.request(form(session, schema))
    assert caught.value.code == -32602
    assert asked == []


async def test_a_question_of_a_long_message_is_refused(session, lend):
    long = "x" * 20_001
    async with lend(Elicitation(lambda _: None, lambda _: None), sessions=[session]) as client:
        for asked in (
            v1.ElicitationFormMode(long, session.id, requested_schema=SCHEMA),
            v1.ElicitationUrlMode(long, session.id, elicitation_id=v1.ElicitationId("e"), url="https://example.com/"),
        ):
            assert await refused(client.request(asked)) == -32602


def test_a_slow_pattern_with_a_default_holds_nothing_up():
    # In a process of its own: Python's `re` would hold the interpreter, and no other limit of time could end it.
    program = """
import asyncio
import accord
from accord import v1

agent = accord.Agent("asks")

@agent.on_prompt
async def ask(turn):
    slow = v1.StringPropertySchema(pattern="^" + "a?" * 100 + "a" * 100 + "$", default="a" * 100)
    answer = await turn.elicit("Which?", v1.ElicitationSchema({"it": slow}))
    assert answer.value == {"it": "a" * 100}, answer

async def main():
    client = accord.Client(elicitation=lambda question: question.content)
    async with accord.connect(agent, client=client) as remote:
        await (await remote.new_session("/")).prompt("go")

asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


async def test_a_question_may_belong_to_a_request_and_no_session(session, lend):
    async with lend(Elicitation(lambda question: {"name": str(question.session)}), sessions=[]) as client:
        asked = v1.ElicitationFormMode("?", request_id=7, requested_schema=SCHEMA)
        assert (await client.request(asked)).content == {"name": "None"}


async def test_a_cancelled_turn_cancels_its_questions(session, lend, within):
    asked, gone = asyncio.Event(), asyncio.Event()

    async def fill(_):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    service = Elicitation(fill)
    async with lend(service, sessions=[session]) as client:
        asking = asyncio.create_task(client.request(form(session)))
        await within(asked.wait())
        service.turn_cancelled(session)
        assert await within(asking) == v1.ElicitationCancelAction()
        await within(gone.wait())


@pytest.mark.requirement("elicitation.url.consent", "elicitation.complete.unknown-ignored")
@pytest.mark.requirement("elicitation.complete.may-not-come")
async def test_a_link_is_agreed_to_and_later_completed(session, lend, within):
    asked, done = [], []

    def visit(question):
        asked.append(question)
        return question.link.url.endswith("1")

    async with lend(Elicitation(visit=visit, on_complete=done.append), sessions=[session]) as client:
        assert await client.request(link(session)) == v1.ElicitationAcceptAction()
        assert await client.request(link(session, "https://example.com/2", "e2")) == v1.ElicitationDeclineAction()
        assert not asked[0].completed.is_set()
        for elicitation_id in ("e2", "unknown", "e1", "e1"):
            await client.notify(v1.CompleteElicitationNotification(v1.ElicitationId(elicitation_id)))
        await within(asked[0].completed.wait())
        assert done == [asked[0]]


# Links


@pytest.mark.parametrize(
    ("url", "domain", "warnings"),
    [
        ("https://example.com/a?b=c#d", "example.com", []),
        ("https://EXAMPLE.com:8443/", "example.com", []),
        ("http://localhost:3000/", "localhost", []),
        ("http://127.0.0.1/", "127.0.0.1", []),
        ("http://example.com/", "example.com", ["not encrypted"]),
        ("https://github.com@evil.example/", "evil.example", ["before the @"]),
        ("https://github.com:443@evil.example/", "evil.example", ["before the @"]),
        ("https://xn--pple-43d.com/", "xn--pple-43d.com", ["other alphabets"]),
        ("https://m\u00fcnchen.example/", "xn--mnchen-3ya.example", ["other alphabets"]),
        ("https://192.0.2.7/", "192.0.2.7", ["bare address"]),
        ("https://[2001:db8::1]/", "2001:db8::1", ["bare address"]),
        ("https://3232235777/", "3232235777", ["bare address"]),
    ],
)
@pytest.mark.requirement("elicitation.url.suspicious-warned")
def test_a_link_warns_of_what_should_make_one_look_twice(url, domain, warnings):
    found = UrlToVisit.of(url)
    assert found.domain == domain
    assert len(found.warnings) == len(warnings)
    for warning, words in zip(found.warnings, warnings, strict=True):
        assert words in warning
    assert "".join(found.marked) == url
    assert (
        found.marked[1].lower()
        == url.lower()
        .rpartition("@")[2]
        .removeprefix("https://")
        .removeprefix("http://")
        .strip("[")
        .split("/")[0]
        .split("]")[0]
        .split(":" if "[" not in url else "/")[0]
    )


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "example.com",
        "https://",
        "https:///path",
        "https://a b/",
        "https://example.com/\u202egnp.exe",
        "https://example.com\\@evil.example/",
        "https://example.com:port/",
        "https://example.com/\x1b[2K",
        "",
    ],
)
def test_what_no_browser_should_be_sent_to_is_refused(url):
    with pytest.raises(accord.RequestError) as caught:
        UrlToVisit.of(url)
    assert caught.value.code == -32602


@pytest.mark.requirement("elicitation.url.not-fetched")
async def test_a_link_is_not_fetched_before_the_user_has_agreed_nor_by_us_behind_it(session, lend):
    visitors = []
    async with await asyncio.start_server(lambda *both: visitors.append(both), "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/connect"
        async with lend(Elicitation(visit=lambda _: True), sessions=[session]) as client:
            request = v1.ElicitationUrlMode(
                message="Sign in", elicitation_id=v1.ElicitationId("1"), url=url, session_id=session.id
            )
            assert await client.request(request) == v1.ElicitationAcceptAction()
    assert visitors == []


# Dialogues


def talk(dialogue, *lines):
    """All that was shown, and the answer."""
    shown = [next(dialogue)]
    try:
        for line in lines:
            shown.append(dialogue.send(line))  # noqa: PERF401
    except StopIteration as end:
        return "".join(shown), end.value
    return "".join(shown), "still asking"


def test_a_form_is_gone_through_field_by_field(session):
    question = FormQuestion("Please", SCHEMA, session, {"port": 3000, "logging": True})
    shown, answer = talk(fill_in(question), "x", "project", "80", "", "no", "2, red")
    assert answer == {"name": "project", "port": 3000, "logging": False, "colors": ["green", "red"]}
    assert "Project name" in shown
    assert "port (optional)" in shown
    assert "! must have at least 2 characters" in shown
    assert "! must be at least 1024" in shown
    assert "1. red" in shown


@pytest.mark.parametrize(("line", "answer"), [("/decline", False), ("/cancel", None), (None, None)])
def test_a_form_can_be_left(session, line, answer):
    assert talk(fill_in(FormQuestion("Please", SCHEMA, session)), "project", line)[1] is answer


def test_what_is_optional_may_be_left_out_and_what_is_required_may_not(session):
    shown, answer = talk(fill_in(FormQuestion("Please", SCHEMA, session)), "", "name", "", "", "")
    assert answer == {"name": "name"}
    assert shown.count("Project name") == 1


@pytest.mark.requirement("elicitation.url.shown-whole", "elicitation.url.domain-stands-out")
def test_a_link_is_shown_whole_with_its_domain_marked(session):
    question = LinkQuestion("Sign in", UrlToVisit.of("https://user@xn--pple-43d.com:8443/a?b#c"), session)
    shown, answer = talk(consider_link(question), "what?", "y")
    assert "https://user@[xn--pple-43d.com]:8443/a?b#c" in shown
    assert "other alphabets" in shown
    assert answer is True
    assert talk(consider_link(question), "n")[1] is False
    assert talk(consider_link(question), None)[1] is None


def permission(session, **call):
    options = [v1.PermissionOption.of("allow_once"), v1.PermissionOption.of("reject_once")]
    return PermissionQuestion(session, ToolCallState(v1.ToolCallId("t"), **call), options)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    ("title", "given", "wants"),
    [
        ("npm test", None, "execute"),
        ("`npm test`", {"command": "npm test"}, "execute"),
        ("Run npm te…", {"command": "npm test"}, "execute"),
        ("Run the tests", {"command": ["bash", "-lc", "npm test"]}, "execute: Run the tests"),
    ],
)
def test_a_question_shows_a_command_once_as_a_person_would_type_it(session, title, given, wants, width):
    shown = next(ask_permission(permission(session, title=title, kind="execute", raw_input=given), width))
    assert (shown.count("npm test"), shown.count("bash")) == (1, 0)
    assert f"│ wants to  {wants}\n" in shown
    assert "│ command   npm test\n" in shown


def test_a_permission_is_given_by_number_or_by_yes_and_no(session):
    question = permission(session, title="Run tests", kind="execute", raw_input={"command": "npm test"})
    shown, answer = talk(ask_permission(question), "7", "1")
    assert answer == question.options[0]
    assert "command   npm test" in shown
    assert "1. allow once     “Allow”" in shown
    for line, expected in (("y", True), ("no", False), (None, False)):
        assert talk(ask_permission(question), line)[1] is expected


EVIL = (
    "\x1b]8;;https://example.com\x1b\\click\x1b]8;;\x1b\\ok\x1b]0;title\x07\x1b[2J\r\nfake prompt> \u202eabc\x9b31m"
    "\u2028\ud83d\ue000\u200b" + "z" + "\u0301" * 100
)
ACTS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ud800-\udfff\ue000]|\u0301{9}")
OURS = ("┌ ", "│ ", "├ ", "└ ", "! ")


def dialogues(evil, *, many=1):
    """Each dialogue, with this text wherever an agent can put one."""
    session = Evil(evil)
    options = [v1.PermissionOption(evil, evil, "allow_once")] * many
    locations = [v1.ToolCallLocation("/" + evil.replace("\ud83d", ""))] * many
    call = ToolCallState(
        v1.ToolCallId("t"), title=evil, kind="execute", raw_input={"command": [evil]}, locations=locations
    )
    yield ask_permission(PermissionQuestion(session, call, options)), ("/more", "what?")
    fields = {
        evil: v1.StringPropertySchema(description=evil, enum=[evil] * many),
        "pattern": v1.StringPropertySchema(title=evil, pattern=f"^{re.escape(evil)}$", default=evil),
        "several": v1.MultiSelectPropertySchema(
            v1.TitledMultiSelectItems([v1.EnumOption(evil, evil, description=evil)] * many), title=evil
        ),
    }
    schema = v1.ElicitationSchema(fields, [evil, "pattern", "several"], title=evil)
    form = FormQuestion(evil, schema, session, {"pattern": evil}, {evil: evil, "several": evil})
    yield fill_in(form), ("/more", "no", "1", "/more", "no", "", "/more", "no")
    readable = "xn--" + "a\u202egpj".encode("punycode").decode()
    link = UrlToVisit.of(f"https://user@{readable}.example/" + "x" * 3_000)
    yield consider_link(LinkQuestion(evil, link, session)), ("/more", "what?")


def screen(dialogue, *lines):
    """All that was shown, as the terminal shows it: what the user types ends with a new line."""
    shown = [next(dialogue)]
    with suppress(StopIteration):
        shown += [dialogue.send(line) for line in lines]
    return "\n".join(shown)


class Evil:
    def __init__(self, name):
        self.agent = name
        self.cwd = Path("/")
        self.id = v1.SessionId("s")


@pytest.mark.requirement("elicitation.text-not-clickable")
@pytest.mark.parametrize("evil", [EVIL, EVIL * 100, f"x\n{'┌ An agent asks for permission'}\n1. Yes\nChoose 1 to 2: "])
def test_nothing_of_an_agent_s_text_acts_on_a_terminal_or_stands_outside_of_its_frame(evil):
    for dialogue, lines in dialogues(evil):
        shown = screen(dialogue, *lines)
        assert not ACTS.search(shown)
        assert [line for line in shown.splitlines() if line and not line.startswith(OURS)] == []


def test_no_line_of_a_question_is_so_long_that_the_terminal_breaks_it():
    for text in (
        "x" * 100_000,
        "日" * 100_000,
        " " * 75 + "Choose 1 to 2: " + " " * 4_000,
        "e\u0301" * 5_000,
        "\x1b" * 5_000,
    ):
        for dialogue, lines in dialogues(text):
            shown = screen(dialogue, *lines)
            assert max(map(columns, shown.splitlines())) < 80


def test_a_permission_question_fits_on_a_screen_whatever_the_agent_puts_into_it():
    for text in ("x" * 100_000, "line\n" * 10_000, EVIL * 100):
        for dialogue, _ in dialogues(text, many=200):
            assert next(dialogue).count("\n") < 80  # a form's choices may scroll
        question, _ = next(dialogues(text, many=200))
        shown = next(question)
        assert shown.count("\n") < 24
        assert "192 more options not shown; /more shows all" in shown


@pytest.mark.parametrize("path", ["/x\0y", "/half \ud83d"])
def test_a_location_that_no_file_can_have_is_refused(session, path):
    call = ToolCallState(v1.ToolCallId("t"), locations=[v1.ToolCallLocation(path)])
    with pytest.raises(accord.RequestError, match="path must be valid Unicode without null bytes"):
        must_be_judgeable(call, [])


def test_what_was_cut_is_shown_when_the_user_asks_for_it(session):
    command = "\n".join(f"echo {number}" for number in range(40)) + "\nrm -rf ~"
    options = [v1.PermissionOption(v1.PermissionOptionId(str(it)), f"No. {it}", "reject_once") for it in range(12)]
    call = ToolCallState(v1.ToolCallId("t"), title="t" * 200, kind="execute", raw_input={"command": command})
    dialogue = ask_permission(PermissionQuestion(session, call, options))
    assert "rm -rf ~" not in next(dialogue)
    assert "rm -rf ~" not in dialogue.send("12")
    shown = dialogue.send("/more")
    assert "rm -rf ~" in shown
    assert "No. 11" in shown
    assert "".join(re.findall("t{9,}", shown)) == "t" * 200
    with pytest.raises(StopIteration) as end:
        dialogue.send("12")
    assert end.value.value is options[11]


def test_what_an_option_does_is_said_in_our_words_whatever_it_is_called(session):
    names = {"allow_always": "No, and never ask again", "reject_once": "Yes, just this once"}
    options = [v1.PermissionOption(v1.PermissionOptionId(kind), name, kind) for kind, name in names.items()]
    question = PermissionQuestion(session, ToolCallState(v1.ToolCallId("t"), title="x"), options)
    shown, answer = talk(ask_permission(question), "1")
    assert "1. allow always   “No, and never ask again”" in shown
    assert "2. reject once    “Yes, just this once”" in shown
    assert "y to allow always, n to reject once" in shown
    assert answer is options[0]


# A real terminal


@pytest.fixture
def terminal():
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    tty.setcbreak(ours)
    modes = tty.tcgetattr(theirs)
    modes[tty.LFLAG] |= tty.ICANON
    tty.tcsetattr(theirs, tty.TCSANOW, modes)
    yield ours, os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


async def shows(fd, words):
    """Waits until the terminal shows this."""
    shown, loop = "", asyncio.get_running_loop()
    while words not in shown:
        ready = asyncio.Event()
        loop.add_reader(fd, ready.set)
        async with asyncio.timeout(30):
            await ready.wait()
        loop.remove_reader(fd)
        shown += os.read(fd, 65_536).decode()
    return shown


@pytest.mark.requirement("elicitation.url.opened-apart")
async def test_a_user_at_a_real_terminal_answers(session, lend, terminal, within):
    ours, name = terminal
    opened = []
    with TerminalUser(name, open_link=opened.append) as user:
        async with lend(Elicitation(user.fill, user.visit), sessions=[session]) as client:
            asking = asyncio.create_task(client.request(form(session)))
            for prompt, typed in (("name", "größe"), ("port", ""), ("logging", "n"), ("colors", "1")):
                await shows(ours, prompt)
                os.write(ours, f"{typed}\n".encode())
            answer = await within(asking)
            assert answer.content == {"name": "größe", "port": 3000, "logging": False, "colors": ["red"]}
            asking = asyncio.create_task(client.request(link(session)))
            assert "[example.com]" in await shows(ours, "Open it?")
            assert opened == []
            os.write(ours, b"y\n")
            assert await within(asking) == v1.ElicitationAcceptAction()
            assert opened == ["https://example.com/connect?id=1"]


async def test_the_end_of_input_and_a_cancelled_turn_end_a_question(session, lend, terminal, within):
    ours, name = terminal
    with TerminalUser(name) as user:
        service = Elicitation(user.fill)
        async with lend(service, sessions=[session]) as client:
            asking = asyncio.create_task(client.request(form(session)))
            await shows(ours, "name")
            os.write(ours, b"\x04")
            assert await within(asking) == v1.ElicitationCancelAction()
            asking = asyncio.create_task(client.request(form(session)))
            await shows(ours, "name")
            service.turn_cancelled(session)
            assert await within(asking) == v1.ElicitationCancelAction()


async def test_questions_at_a_terminal_are_asked_one_at_a_time(session, terminal, within):
    ours, name = terminal
    with TerminalUser(name) as user:
        first = asyncio.create_task(user.permit(permission(session, title="First")))
        second = asyncio.create_task(user.permit(permission(session, title="Second")))
        assert "Second" not in await shows(ours, "Choose")
        os.write(ours, b"y\n")
        await shows(ours, "Second")
        os.write(ours, b"2\n")
        assert await within(first) is True
        assert (await within(second)).kind == "reject_once"


async def test_what_was_typed_before_a_question_is_no_answer_to_it(session, terminal, within):
    ours, name = terminal
    with TerminalUser(name) as user:
        os.write(ours, b"1\n1\n")  # as a user does who believes a question that the agent has painted
        asking = asyncio.create_task(user.permit(permission(session, title="First")))
        await shows(ours, "Choose")
        os.write(ours, b"2\n")
        assert (await within(asking)).kind == "reject_once"


async def test_a_program_can_be_still_while_a_question_is_open(session, terminal, within):
    ours, name = terminal
    seen = []

    @asynccontextmanager
    async def still():
        seen.append("open")
        try:
            yield
        finally:
            seen.append("closed")

    with TerminalUser(name, while_asking=still) as user:
        asking = asyncio.create_task(user.permit(permission(session, title="First")))
        await shows(ours, "Choose")
        assert seen == ["open"]
        os.write(ours, b"y\n")
        await within(asking)
        assert seen == ["open", "closed"]
        asking = asyncio.create_task(user.permit(permission(session, title="Second")))
        await shows(ours, "Choose")
        asking.cancel()
        await within(asyncio.wait([asking]))
        assert seen == ["open", "closed"] * 2


async def test_the_frame_of_a_question_is_drawn_as_no_text_can_be(session, terminal, within, monkeypatch):
    ours, name = terminal
    monkeypatch.setenv("TERM", "xterm")
    with TerminalUser(name) as user:
        asking = asyncio.create_task(user.permit(permission(session, title="x\x1b[7m│\x1b[27m y")))
        shown = await shows(ours, "Choose")
        os.write(ours, b"y\n")
        await within(asking)
    lines = shown.splitlines()[1:]
    assert all(re.match("\x1b\\[7m[┌│├└]\x1b\\[27m ", line) for line in lines)
    assert shown.count("\x1b") == 2 * len(lines)


async def test_a_question_is_as_wide_as_its_terminal(session, terminal, within):
    ours, name = terminal
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    with TerminalUser(name) as user:
        asking = asyncio.create_task(user.permit(permission(session, title="x" * 500)))
        shown = await shows(ours, "reject once:")
        os.write(ours, b"y\n")
        await within(asking)
    *framed, _ = re.sub("\x1b\\[2?7m", "", shown).splitlines()
    assert max(map(columns, framed)) == 49
