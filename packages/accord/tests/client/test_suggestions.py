"""Suggestions as a client asks for them, of an agent that a script plays in raw JSON, and of an agent of ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

import accord
from accord import v1
from accord.testing import ScriptedPeer
from accord.transports import Target
from accord.transports.memory_transport import pair

FOLDER = "/w"
URI = "file:///w/a.py"
ALL_EVENTS = {
    "didOpen": {},
    "didChange": {"syncKind": "incremental"},
    "didClose": {},
    "didSave": {},
    "didFocus": {},
}


def nes(**events: Any) -> dict[str, Any]:
    return {"events": {"document": events}}


def spanning(start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    return {"start": position(*start), "end": position(*end)}


def position(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


def edit(suggestion: str, start: tuple[int, int], end: tuple[int, int], text: str, uri: str = URI) -> dict[str, Any]:
    return {"kind": "edit", "id": suggestion, "uri": uri, "edits": [{"range": spanning(start, end), "newText": text}]}


class ScriptedAgent(Target):
    """A scripted agent with these capabilities."""

    name = "scripted"

    def __init__(self, capabilities: Mapping[str, Any]) -> None:
        self.capabilities = capabilities
        self.hello: dict[str, Any] = {}
        self.peer: asyncio.Future[ScriptedPeer] = asyncio.get_running_loop().create_future()

    def dial(self) -> Any:
        here, there = pair()
        self.opening = asyncio.create_task(self._open(there))
        return here

    async def _open(self, transport: Any) -> None:
        peer = ScriptedPeer(transport, deadline=120)
        await peer.open()
        hello = await peer.expect("initialize")
        self.hello = hello["params"]
        peer.answer(hello, {"protocolVersion": 1, "agentCapabilities": self.capabilities})
        self.peer.set_result(peer)


class Stage:
    """`nes` is ours, `agent` is the script."""

    def __init__(self, nes: accord.Suggestions, agent: ScriptedPeer, hello: dict[str, Any], started: Any) -> None:
        self.nes = nes
        self.agent = agent
        self.hello = hello
        self.started = started

    async def told(self, method: str) -> dict[str, Any]:
        return (await self.agent.expect(method))["params"]

    async def asked(
        self, document: accord.OpenDocument, at: int, **more: Any
    ) -> tuple[asyncio.Task[Any], dict[str, Any]]:
        asking = asyncio.create_task(document.suggest(at, **more))
        return asking, await self.agent.expect("nes/suggest")

    async def found(self, document: accord.OpenDocument, *suggestions: Any) -> list[accord.Suggestion]:
        asking, request = await self.asked(document, 0)
        self.agent.answer(request, {"suggestions": list(suggestions)})
        return await asking


@asynccontextmanager
async def suggesting(
    capabilities: Mapping[str, Any] | None = None, *, encoding: str | None = None, unstable: bool = True
) -> AsyncGenerator[Stage]:
    declared = {"nes": nes(**ALL_EVENTS) if capabilities is None else capabilities}
    target = ScriptedAgent(declared | ({} if encoding is None else {"positionEncoding": encoding}))
    async with accord.connect(target, unstable=unstable) as remote:
        agent = await target.peer
        async with agent:
            suggestions = remote.suggestions(FOLDER)
            opening = asyncio.create_task(suggestions.__aenter__())
            start = await agent.expect("nes/start")
            agent.answer(start, {"sessionId": "nes-1"})
            await opening
            yield Stage(suggestions, agent, target.hello, start["params"])
            leaving = asyncio.create_task(suggestions.__aexit__(None, None, None))
            close = await agent.expect("nes/close")
            assert close["params"] == {"sessionId": "nes-1"}
            agent.answer(close, {})
            await leaving


async def test_a_session_starts_in_its_folder_and_offers_what_can_be_shown() -> None:
    async with suggesting() as stage:
        assert stage.started == {"workspaceUri": "file:///w", "workspaceFolders": [{"uri": "file:///w", "name": "w"}]}
        declared = stage.hello["clientCapabilities"]
        assert declared["nes"] == {"jump": {}, "rename": {}, "searchAndReplace": {}}
        assert declared["positionEncodings"] == ["utf-32", "utf-16", "utf-8"]


async def test_without_unstable_nothing_is_offered_and_positions_are_utf_16() -> None:
    async with suggesting(unstable=False) as stage:
        assert not {"nes", "positionEncodings"} & stage.hello["clientCapabilities"].keys()
        document = await stage.nes.open("a.py", "😀b")
        await stage.told("document/didOpen")
        await document.edit(1, 2, "c")
        changed = await stage.told("document/didChange")
        assert changed["contentChanges"] == [{"range": spanning((0, 2), (0, 3)), "text": "c"}]


@pytest.mark.requirement("nes.encoding.client-default")
@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 4), ("utf-16", 2), ("utf-32", 1), (None, 2)])
async def test_a_document_speaks_the_encoding_that_the_agent_chose(encoding: str | None, character: int) -> None:
    async with suggesting(encoding=encoding) as stage:
        document = await stage.nes.open("a.py", "😀b", language="python")
        opened = {"sessionId": "nes-1", "uri": URI, "languageId": "python", "version": 1, "text": "😀b"}
        assert await stage.told("document/didOpen") == opened
        await document.change("😀total")
        assert await stage.told("document/didChange") == {
            "sessionId": "nes-1",
            "uri": URI,
            "version": 2,
            "contentChanges": [{"range": spanning((0, character), (0, character + 1)), "text": "total"}],
        }
        asking, request = await stage.asked(document, 1, selection=(0, 1), trigger="manual")
        assert request["params"] == {
            "sessionId": "nes-1",
            "uri": URI,
            "version": 2,
            "position": position(0, character),
            "triggerKind": "manual",
            "selection": spanning((0, 0), (0, character)),
        }
        stage.agent.answer(request, {"suggestions": [edit("s1", (0, character), (0, character + 5), "sum")]})
        (suggestion,) = await asking
        assert suggestion.new_text == "😀sum"


async def test_an_encoding_that_was_not_offered_is_refused() -> None:
    target = ScriptedAgent({"nes": {}, "positionEncoding": "utf-7"})
    async with accord.connect(target, unstable=True) as remote, await target.peer:
        with pytest.raises(
            accord.ProtocolError, match="'utf-7', which was not offered; offered: utf-32, utf-16, utf-8"
        ):
            async with remote.suggestions(FOLDER):
                pass


async def test_an_agent_without_suggestions_is_told_apart_before_anything_is_sent() -> None:
    target = ScriptedAgent({})
    async with accord.connect(target) as remote, await target.peer:
        with pytest.raises(accord.CapabilityMissing, match=r"remote\.suggestions"):
            async with remote.suggestions(FOLDER):
                pass


async def test_an_accepted_edit_changes_the_document_and_the_agent_is_told() -> None:
    async with suggesting(encoding="utf-32") as stage:
        document = await stage.nes.open("a.py", "one\ntwo\n")
        await stage.told("document/didOpen")
        (suggestion,) = await stage.found(document, edit("s1", (1, 0), (1, 3), "2"))
        assert await suggestion.accept() == document.text == "one\n2\n"
        assert await stage.told("nes/accept") == {"sessionId": "nes-1", "id": "s1"}
        changed = await stage.told("document/didChange")
        assert changed["contentChanges"] == [{"range": spanning((1, 0), (1, 3)), "text": "2"}]
        with pytest.raises(RuntimeError, match="accepted or rejected already"):
            await suggestion.reject()


async def test_a_suggestion_of_another_kind_is_accepted_without_a_change() -> None:
    async with suggesting() as stage:
        document = await stage.nes.open("a.py", "one")
        await stage.told("document/didOpen")
        jump = {"kind": "jump", "id": "s1", "uri": "file:///w/b.py", "position": position(3, 0)}
        elsewhere = edit("s2", (0, 0), (0, 0), "x", uri="file:///w/b.py")
        first, second, third = await stage.found(document, jump, elsewhere, {"kind": "hologram", "id": "s3"})
        assert isinstance(first.value, v1.NesJumpSuggestion)
        assert (first.new_text, second.new_text, third.new_text) == (None, None, None)
        assert await first.accept() == "one"
        assert (await stage.told("nes/accept"))["id"] == "s1"
        await third.reject("ignored")
        assert await stage.told("nes/reject") == {"sessionId": "nes-1", "id": "s3", "reason": "ignored"}


async def test_a_suggestion_for_an_older_text_is_not_applied() -> None:
    async with suggesting() as stage:
        document = await stage.nes.open("a.py", "one")
        await stage.told("document/didOpen")
        (suggestion,) = await stage.found(document, edit("s1", (0, 0), (0, 3), "1"))
        await document.change("one!")
        await stage.told("document/didChange")
        with pytest.raises(accord.StaleSuggestion, match=r"for version 1 of file:///w/a\.py, which has version 2 now"):
            await suggestion.accept()
        await suggestion.reject("replaced")
        assert (await stage.told("nes/reject"))["reason"] == "replaced"


async def test_a_newer_request_ends_the_one_before_and_its_late_suggestions_are_rejected() -> None:
    async with suggesting() as stage:
        document = await stage.nes.open("a.py", "one")
        await stage.told("document/didOpen")
        first, old = await stage.asked(document, 0)
        second = asyncio.create_task(document.suggest(1))
        assert await stage.told("$/cancel_request") == {"requestId": old["id"]}
        new = await stage.agent.expect("nes/suggest")
        stage.agent.answer(old, {"suggestions": [edit("s1", (0, 0), (0, 1), "1")]})
        assert await first == []
        assert await stage.told("nes/reject") == {"sessionId": "nes-1", "id": "s1", "reason": "cancelled"}
        stage.agent.answer(new, {"suggestions": [edit("s2", (0, 0), (0, 1), "1")]})
        (newer,) = await second
        assert isinstance(newer.value, v1.NesEditSuggestion)
        assert newer.value.id == "s2"


@pytest.mark.parametrize("how", ["the document changed", "the agent answered with an error"])
async def test_a_request_that_came_to_nothing_gives_no_suggestions(how: str) -> None:
    async with suggesting() as stage:
        document = await stage.nes.open("a.py", "one")
        await stage.told("document/didOpen")
        asking, request = await stage.asked(document, 0)
        if how == "the document changed":
            await document.change("one!")
            await stage.told("document/didChange")
            stage.agent.answer(request, {"suggestions": [edit("s1", (0, 0), (0, 1), "1")]})
            assert (await stage.told("nes/reject"))["reason"] == "cancelled"
        else:
            stage.agent.error(request, -32800)
        assert await asking == []


async def test_a_caller_that_is_cancelled_cancels_its_request() -> None:
    async with suggesting() as stage:
        document = await stage.nes.open("a.py", "one")
        await stage.told("document/didOpen")
        asking, request = await stage.asked(document, 0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await stage.told("$/cancel_request") == {"requestId": request["id"]}
        stage.agent.answer(request, {"suggestions": [edit("s1", (0, 0), (0, 1), "1")]})
        assert (await stage.told("nes/reject"))["id"] == "s1"


async def test_another_error_of_the_agent_is_raised() -> None:
    async with suggesting() as stage:
        document = await stage.nes.open("a.py", "one")
        await stage.told("document/didOpen")
        asking, request = await stage.asked(document, 0)
        stage.agent.error(request, -32603, "no model")
        with pytest.raises(accord.PeerError, match="no model"):
            await asking


@pytest.mark.requirement("nes.events.only-wanted")
async def test_an_agent_is_told_only_what_it_asked_for() -> None:
    async with suggesting(nes(didChange={"syncKind": "full"})) as stage:
        document = await stage.nes.open("a.py", "one")
        await document.focus(1)
        await document.save()
        await document.change("two")
        changed = await stage.told("document/didChange")
        assert changed["contentChanges"] == [{"text": "two"}]
        await document.change("two")
        await document.close()


async def test_focus_save_and_close_are_told_where_they_are_wanted() -> None:
    async with suggesting() as stage:
        document = await stage.nes.open("a.py", "one\ntwo")
        await stage.told("document/didOpen")
        await document.focus(4, visible=(0, 4))
        assert await stage.told("document/didFocus") == {
            "sessionId": "nes-1",
            "uri": URI,
            "version": 1,
            "position": position(1, 0),
            "visibleRange": spanning((0, 0), (1, 0)),
        }
        await document.save()
        assert await stage.told("document/didSave") == {"sessionId": "nes-1", "uri": URI}
        await document.close()
        await document.close()
        assert await stage.told("document/didClose") == {"sessionId": "nes-1", "uri": URI}


@pytest.mark.requirement("nes.context.only-wanted")
async def test_of_the_context_the_agent_gets_what_it_asked_for() -> None:
    wishes = {**nes(), "context": {"editHistory": {"maxCount": 1}, "openFiles": {}}}
    async with suggesting(wishes) as stage:
        document = await stage.nes.open("a.py", "one")
        context = v1.NesSuggestContext(
            edit_history=[v1.NesEditHistoryEntry(URI, "new"), v1.NesEditHistoryEntry(URI, "old")],
            open_files=[v1.NesOpenFile(URI, "python")],
            diagnostics=[],
        )
        asking, request = await stage.asked(document, 0, context=context)
        assert request["params"]["context"] == {
            "editHistory": [{"uri": URI, "diff": "new"}],
            "openFiles": [{"uri": URI, "languageId": "python"}],
        }
        stage.agent.answer(request, {"suggestions": []})
        assert await asking == []


async def test_edits_that_overlap_are_an_error_of_the_agent() -> None:
    async with suggesting() as stage:
        document = await stage.nes.open("a.py", "one")
        await stage.told("document/didOpen")
        both = edit("s1", (0, 0), (0, 2), "x")
        both["edits"].append({"range": spanning((0, 1), (0, 3)), "newText": "y"})
        with pytest.raises(accord.ProtocolError, match="must not overlap"):
            await stage.found(document, both)


@pytest.mark.requirement("nes.start.login-required")
async def test_a_session_starts_after_the_login_that_it_requires() -> None:
    agent = accord.Agent("suggests", unstable=True)
    agent.on_prompt(lambda _: None)
    agent.on_suggest(lambda request: [request.edit("b")])
    agent.login("key", "Key")(lambda: None)
    async with accord.connect(agent) as remote:
        with pytest.raises(accord.PeerError) as refused:
            async with remote.suggestions(FOLDER):
                pass
        assert refused.value.code == -32000
        await remote.login()
        async with remote.suggestions(FOLDER) as suggestions:
            assert len(await (await suggestions.open("a.py", "a")).suggest(0)) == 1


async def test_a_document_is_opened_once() -> None:
    async with suggesting() as stage:
        await stage.nes.open("a.py", "one")
        await stage.told("document/didOpen")
        with pytest.raises(ValueError, match="is open already"):
            await stage.nes.open("file:///w/%61.py", "two")


@pytest.mark.parametrize("unstable", [True, False])
async def test_our_client_and_our_agent_follow_an_edit_together(unstable: bool) -> None:
    agent = accord.Agent("suggests", unstable=True)
    agent.on_prompt(lambda _: None)
    outcomes: list[str] = []

    @agent.on_suggest(context=["diagnostics"])
    async def suggest(request: accord.SuggestionRequest) -> list[v1.NesSuggestion | None]:
        assert request.document.text[: request.offset].endswith("pr")
        text = request.document.text
        return [request.edit(text[: request.offset] + "int()" + text[request.offset :]), request.jump(line=1)]

    @agent.on_suggestion_outcome
    def settled(suggestion: v1.NesSuggestion, outcome: str) -> None:
        outcomes.append(outcome)

    async with accord.connect(agent, unstable=unstable) as remote, remote.suggestions(FOLDER) as suggestions:
        document = await suggestions.open("a.py", "# 😀\r\n\r\n")
        await document.edit(5, 5, "# 漢\r\npr")
        found = await document.suggest(len("# 😀\r\n# 漢\r\npr"))
        assert len(found) == (2 if unstable else 1)
        assert await found[0].accept() == "# 😀\r\n# 漢\r\nprint()\r\n"
        assert await document.suggest(len("# 😀\r\n# 漢\r\npr")) != []
        assert outcomes == ["accepted"]
