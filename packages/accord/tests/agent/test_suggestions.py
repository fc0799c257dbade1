"""Next edit suggestions of an agent, against a client that a script plays in raw JSON."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from accord import Agent, memory_pair
from accord.testing import ScriptedPeer
from tests.waiting import eventually

URI = "file:///w/a.py"
SHOWS_ALL = {"nes": {"jump": {}, "rename": {}, "searchAndReplace": {}}, "positionEncodings": ["utf-16", "utf-32"]}


def position(line, character):
    return {"line": line, "character": character}


def spanning(start, end):
    return {"start": position(*start), "end": position(*end)}


class Editor:
    """A client with a suggestion session."""

    def __init__(self, script):
        self.script = script
        self.session = ""

    async def start(self):
        folder = {"workspaceUri": "file:///w", "workspaceFolders": [{"uri": "file:///w", "name": "w"}]}
        self.session = (await self.script.request("nes/start", folder))["sessionId"]

    def tell(self, event, **params):
        self.script.tell(f"document/{event}", {"sessionId": self.session, "uri": URI, **params})

    def open(self, text, version=1):
        self.tell("didOpen", languageId="python", version=version, text=text)

    def change(self, version, *changes):
        self.tell("didChange", version=version, contentChanges=list(changes))

    def ask(self, version=1, at=(0, 0), **more):
        params = {"uri": URI, "version": version, "position": position(*at), "triggerKind": "automatic"}
        return self.script.call("nes/suggest", {"sessionId": self.session, **params, **more})

    async def suggestions(self, *args, **more):
        return (await self.script.expect_result(self.ask(*args, **more)))["suggestions"]


@asynccontextmanager
async def editing(agent, capabilities=None, *, start=True):
    agent.on_prompt(lambda _: None)
    here, there = memory_pair()
    serving = asyncio.create_task(agent.serve(there))
    async with ScriptedPeer(here, deadline=120) as script:
        hello = {"protocolVersion": 1, "clientCapabilities": SHOWS_ALL if capabilities is None else capabilities}
        editor = Editor(script)
        editor.agent = (await script.request("initialize", hello))["agentCapabilities"]
        if start:
            await editor.start()
        yield editor
    await serving


@pytest.fixture
def agent():
    return Agent("suggests", unstable=True)


async def test_what_is_registered_is_what_is_declared(agent):
    agent.on_suggest(context={"diagnostics": None, "edit_history": 6})(lambda _: None)
    agent.on_document_save(lambda _: None)
    async with editing(agent) as editor:
        assert editor.agent["nes"] == {
            "events": {
                "document": {"didOpen": {}, "didChange": {"syncKind": "incremental"}, "didClose": {}, "didSave": {}}
            },
            "context": {"editHistory": {"maxCount": 6}, "diagnostics": {}},
        }
        assert editor.agent["positionEncoding"] == "utf-32"


async def test_an_agent_without_suggestions_declares_none(agent):
    async with editing(agent, start=False) as editor:
        assert "nes" not in editor.agent
        assert "positionEncoding" not in editor.agent
        await editor.script.expect_error(editor.script.call("nes/start", {}), -32601)


@pytest.mark.requirement("nes.encoding.agent-default")
async def test_a_client_that_offers_no_encoding_counts_in_utf_16(agent):
    seen = []
    agent.on_suggest(lambda request: seen.append((request.offset, request.selection)))
    async with editing(agent, {}) as editor:
        assert "positionEncoding" not in editor.agent
        editor.open("a😀b")
        assert await editor.suggestions(at=(0, 3), selection=spanning((0, 1), (0, 4))) == []
    assert seen == [(2, (1, 3))]


@pytest.mark.requirement("nes.encoding.of-the-list")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_an_edit_is_sent_in_the_encoding_of_the_client(agent, encoding):
    @agent.on_suggest
    async def suggest(request):
        new = request.document.text.replace("😀x", "😀total")
        return [request.edit(new, cursor=len("one\n😀total"))]

    async with editing(agent, {"positionEncodings": [encoding]}) as editor:
        editor.open("one\n😀x\n")
        (edit,) = await editor.suggestions()
        first = {"utf-8": 4, "utf-16": 2, "utf-32": 1}[encoding]
        assert edit == {
            "kind": "edit",
            "id": edit["id"],
            "uri": URI,
            "edits": [{"range": spanning((1, first), (1, first + 1)), "newText": "total"}],
            "cursorPosition": position(1, first + 5),
        }


async def test_the_mirror_follows_the_changes_of_the_client(agent):
    texts = []
    agent.on_suggest(lambda request: texts.append((request.document.text, request.document.version)))
    async with editing(agent) as editor:
        editor.open("ab\n")
        editor.change(
            2, {"range": spanning((0, 1), (0, 2)), "text": "x\ny"}, {"range": spanning((1, 0), (1, 1)), "text": "z"}
        )
        await editor.suggestions(2)
        editor.change(5, {"text": "whole"}, {"range": spanning((0, 5), (0, 5)), "text": "!"})
        await editor.suggestions(5)
        editor.tell("didClose")
        await editor.script.expect_error(editor.ask(5), -32002)
    assert texts == [("ax\nz\n", 2), ("whole!", 5)]


async def test_a_document_does_not_change_while_a_function_works_on_it(agent):
    seen, go_on = [], asyncio.Event()

    @agent.on_suggest
    async def suggest(request):
        seen.append(request.document.text)
        await go_on.wait()
        seen.append(request.document.text)
        return [request.replace(0, 1, "b")]

    async with editing(agent) as editor:
        editor.open("a")
        asked = editor.ask()
        await eventually(lambda: seen)
        editor.change(2, {"text": "later"})
        go_on.set()
        result = await editor.script.expect_result(asked)
        assert [edit["newText"] for edit in result["suggestions"][0]["edits"]] == ["b"]
        assert seen == ["a", "a"]


async def test_a_change_that_cannot_be_applied_closes_the_mirror_until_the_whole_text_comes(agent):
    agent.on_suggest(lambda request: [request.edit("new")])
    async with editing(agent) as editor:
        editor.change(2, {"range": spanning((0, 0), (0, 1)), "text": "x"})
        await editor.script.expect_error(editor.ask(2), -32002)
        editor.open("a", 4)
        editor.change(3, {"range": spanning((0, 0), (0, 1)), "text": "x"})
        await editor.script.expect_error(editor.ask(3), -32002)
        editor.change(3, {"text": "whole"})
        assert len(await editor.suggestions(3)) == 1


async def test_a_request_for_another_version_than_the_mirrors_gets_no_suggestions(agent):
    called = []
    agent.on_suggest(called.append)
    async with editing(agent) as editor:
        editor.open("a")
        assert await editor.suggestions(7) == []
        assert called == []


async def test_different_spellings_of_a_uri_name_one_document(agent):
    agent.on_suggest(lambda request: [request.edit("b")])
    async with editing(agent) as editor:
        editor.open("a")
        (edit,) = await editor.suggestions(uri="file:///w/%61.py")
        assert edit["uri"] == URI


@pytest.mark.requirement("nes.kinds.only-shown")
async def test_kinds_that_the_client_does_not_show_are_not_made(agent):
    @agent.on_suggest
    def suggest(request):
        jump = request.jump("b.py", line=3)
        assert request.shows("jump") == (jump is not None)
        return [jump, request.rename(1, "total"), request.search("old", "new", file="src", is_regex=True)]

    async with editing(agent) as editor:
        editor.open("ab")
        jump, rename, search = await editor.suggestions()
        assert (jump["kind"], jump["uri"], jump["position"]) == ("jump", "file:///w/b.py", position(2, 0))
        assert (rename["kind"], rename["position"], rename["newName"]) == ("rename", position(0, 1), "total")
        assert (search["kind"], search["uri"], search["isRegex"]) == ("searchAndReplace", "file:///w/src", True)
    other = Agent("suggests", unstable=True)
    other.on_suggest(suggest)
    async with editing(other, {"nes": {"jump": {}}}) as editor:
        editor.open("ab")
        assert [it["kind"] for it in await editor.suggestions()] == ["jump"]


async def test_an_author_learns_what_became_of_a_suggestion_and_a_rejected_one_does_not_come_again(agent):
    outcomes = []
    agent.on_suggest(lambda request: [request.replace(0, 1, "b")])
    agent.on_suggestion_outcome(lambda suggestion, outcome: outcomes.append((suggestion.id, outcome)))
    async with editing(agent) as editor:
        editor.open("a")
        expected = []
        for told, outcome in (
            ({"method": "nes/accept"}, "accepted"),
            ({"method": "nes/reject", "reason": "ignored"}, "ignored"),
            ({"method": "nes/reject"}, "rejected"),
        ):
            (edit,) = await editor.suggestions()
            method = told.pop("method")
            editor.script.tell(method, {"sessionId": editor.session, "id": edit["id"], **told})
            editor.script.tell(method, {"sessionId": editor.session, "id": "unknown", **told})
            expected.append((edit["id"], outcome))
        assert await editor.suggestions() == []
    assert outcomes == expected


async def test_focus_and_save_reach_the_functions_for_them(agent):
    seen = []
    agent.on_suggest(lambda _: None)
    agent.on_document_focus(lambda document, offset: seen.append(("focus", document.path.name, offset)))
    agent.on_document_save(lambda document: seen.append(("save", document.text)))
    async with editing(agent) as editor:
        editor.open("a\nb")
        editor.tell("didFocus", version=1, position=position(1, 1), visibleRange=spanning((0, 0), (1, 1)))
        editor.tell("didSave")
        await editor.suggestions()
    assert seen == [("focus", "a.py", 3), ("save", "a\nb")]


@pytest.mark.requirement("nes.close.ends-work")
@pytest.mark.parametrize("end", ["cancel", "close"])
async def test_a_request_ends_when_it_is_cancelled_and_when_its_session_is_closed(agent, end):
    began, ended = asyncio.Event(), []

    @agent.on_suggest
    async def suggest(_):
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async with editing(agent) as editor:
        editor.open("a")
        asked = editor.ask()
        await began.wait()
        if end == "cancel":
            editor.script.tell("$/cancel_request", {"requestId": asked})
            await editor.script.expect_error(asked, -32800)
        else:
            closing = editor.script.call("nes/close", {"sessionId": editor.session})
            answers = {message["id"]: message for message in [await editor.script.receive() for _ in range(2)]}
            assert answers[asked]["error"]["code"] == -32800
            assert answers[closing]["result"] == {}
            await editor.script.expect_error(editor.ask(), -32002)
    assert ended == [True]


async def test_a_suggestion_session_needs_the_login(agent):
    agent.on_suggest(lambda _: None)
    agent.login("key", "Key")(lambda: None)
    async with editing(agent, start=False) as editor:
        await editor.script.expect_error(editor.script.call("nes/start", {}), -32000)
        await editor.script.request("authenticate", {"methodId": "key"})
        await editor.script.expect("auth/status_update")
        await editor.start()


async def test_what_is_no_suggestion_is_refused_where_it_was_made(agent, caplog):
    agent.on_suggest(lambda _: ["do it"])
    async with editing(agent) as editor:
        editor.open("a")
        await editor.script.expect_error(editor.ask(), -32603)
    assert "@agent.on_suggest" in caplog.text


@pytest.mark.parametrize(
    ("register", "problem"),
    [
        (lambda _: Agent("stable").on_suggest, r"write Agent\(..., unstable=True\)"),
        (lambda agent: agent.on_suggest(context=["diagnostic"]), "context must be of recent_files, .*got 'diagnostic'"),
        (lambda agent: agent.on_suggest(context={"diagnostics": 3}), "a count in context .*got diagnostics=3"),
        (lambda agent: agent.on_suggest(context={"edit_history": 0}), "a count in context .*got edit_history=0"),
    ],
)
def test_a_wrong_registration_is_refused(agent, register, problem):
    with pytest.raises(ValueError, match=problem):
        register(agent)(lambda _: None)


def test_a_second_function_for_suggestions_is_refused(agent):
    agent.on_suggest(lambda _: None)
    with pytest.raises(ValueError, match=r"@agent\.on_suggest was used twice"):
        agent.on_suggest(lambda _: None)
