"""Everything that `/help` lists does what it says, whether its client lends everything or nothing."""

import base64
import io
import struct
import wave
import zlib

import pytest

from accord import PeerError, v1
from accord_tools.demo.built_in_agent import FEATURES
from accord_tools.demo.demo_work import FIRST_LINES
from tests.waiting import eventually


async def test_help_lists_every_command_that_is_advertised(visit):
    async with visit() as session:
        answer = await session.say("/help")
        [advertised] = [update for update in session.updates if isinstance(update, v1.AvailableCommandsUpdate)]
        for command in advertised.available_commands:
            assert f"`/{command.name}" in answer.text
            assert command.description in answer.text
        assert {feature.name for feature in FEATURES} < {command.name for command in advertised.available_commands}


@pytest.mark.requirement("capabilities.agent-any-combination")
@pytest.mark.parametrize("lends", [True, False])
@pytest.mark.parametrize("feature", [feature.name for feature in FEATURES if feature.name not in ("error", "slow")])
async def test_every_command_ends_well_and_says_something(visit, feature, lends):
    async with visit(lends=lends) as session:
        answer = await session.say(f"/{feature}")
        assert answer.stop_reason == ("refusal" if feature == "stop" else "end_turn")
        assert answer.text


async def test_a_plan_is_followed_step_by_step(visit):
    async with visit() as session:
        plans = (await session.say("/plan")).of(v1.Plan)
        statuses = [[entry.status for entry in plan.entries] for plan in plans]
        assert statuses[0] == ["pending"] * 3
        assert statuses[-1] == ["completed"] * 3
        assert ["completed", "in_progress", "pending"] in statuses


async def test_a_thought_comes_before_the_answer(visit):
    async with visit() as session:
        answer = await session.say("/think")
        kinds = [type(update) for update in answer.updates]
        assert kinds[0] is v1.AgentThoughtChunk
        assert kinds[-1] is v1.AgentMessageChunk


async def test_two_plans_stand_beside_each_other(visit):
    async with visit() as session:
        updates = (await session.say("/plans")).of(v1.PlanUpdate | v1.PlanRemoved)
        assert [getattr(update, "plan_id", None) or update.plan.plan_id for update in updates][:2] == ["design", "work"]
        assert updates[-1] == v1.PlanRemoved(v1.PlanId("design"))


async def test_a_subagent_is_announced_and_ends(visit):
    async with visit() as session:
        answer = await session.say("/subagent")
        states = [update.state for update in answer.of(v1.SubagentUpdate)]
        assert [type(state) for state in states] == [v1.RunningStateUpdate, v1.IdleStateUpdate]
        assert "My subagent" in answer.text


async def test_a_compaction_has_a_summary(visit):
    async with visit() as session:
        answer = await session.say("/compact")
        assert [update.status for update in answer.of(v1.CompactionUpdate)] == ["in_progress", "completed"]
        assert answer.of(v1.CompactionSummaryChunk)


# Files


async def test_an_edit_is_shown_asked_for_and_done(visit):
    async with visit() as session:
        answer = await session.say("/edit")
        page = session.folder / "accord-demo.md"
        assert page.read_text() == FIRST_LINES
        [asked] = session.client.asked
        assert asked.tool_call.content == [v1.Diff(str(page), FIRST_LINES)]
        call, status, content = answer.tool
        assert (call.kind, status, content) == ("edit", "completed", [v1.Diff(str(page), FIRST_LINES)])
        assert call.locations == [v1.ToolCallLocation(str(page))]
        await session.say("/edit")
        assert page.read_text() == f"{FIRST_LINES}And once more.\n"


async def test_an_edit_that_is_refused_changes_nothing(visit):
    async with visit() as session:
        (session.folder / "mine.txt").write_text("mine")
        session.client.allows = False
        answer = await session.say("/edit mine.txt")
        assert (session.folder / "mine.txt").read_text() == "mine"
        assert answer.tool[1] == "failed"
        assert answer.text == "As you wish: I changed nothing."


@pytest.mark.parametrize(("mode", "written", "questions"), [("explain", False, 0), ("auto", True, 0), ("ask", True, 1)])
async def test_the_mode_says_how_freely_it_works(visit, mode, written, questions):
    async with visit() as session:
        request = v1.SetSessionModeRequest(session.session.session_id, v1.SessionModeId(mode))
        await session.peer.request(request, timeout=30)
        await session.say("/edit")
        assert (session.folder / "accord-demo.md").exists() == written
        assert len(session.client.asked) == questions


async def test_where_the_client_cannot_write_the_edit_is_only_shown(visit):
    async with visit(lends=False) as session:
        await session.say("/mode auto")
        answer = await session.say("/edit")
        assert "lends me no files to write" in answer.text
        assert isinstance(answer.tool[2][0], v1.Diff)
        assert list(session.folder.iterdir()) == []


async def test_a_client_that_cannot_ask_for_permission_refuses(visit):
    async with visit(lends=False) as session:
        answer = await session.say("/edit")
        assert answer.tool[1] == "failed"
        assert answer.text == "As you wish: I changed nothing."


@pytest.mark.parametrize("lends", [True, False])
async def test_a_file_is_read_through_the_client_or_from_the_disk(visit, lends):
    async with visit(lends=lends) as session:
        (session.folder / "notes.txt").write_text("one\ntwo\n")
        answer = await session.say("/read notes.txt")
        assert answer.text == "`notes.txt` has 2 lines and 8 characters."
        assert answer.tool[1:] == ("completed", [v1.Content.of("one\ntwo\n")])
        assert (await session.say("/read missing.txt")).text == "I find no file `missing.txt`."
        (session.folder / "noise.txt").write_bytes(b"\xff\x00\xfe")
        answer = await session.say("/read noise.txt")
        assert answer.tool[1] == "failed"
        assert answer.text.startswith("I cannot read `noise.txt`: ")


# Terminals


async def test_a_command_runs_in_a_terminal_of_the_client_that_is_released(visit):
    async with visit() as session:
        answer = await session.say("/run")
        call, status, content = answer.tool
        assert (call.kind, status) == ("execute", "completed")
        assert content == [v1.Terminal(v1.TerminalId("terminal-0"))]
        assert answer.text == "It went well. It said:\n```\nHello from a terminal that your client lends\n```"
        assert session.client.terminals == {}


async def test_a_command_that_fails_marks_its_tool_failed(visit):
    async with visit() as session:
        answer = await session.say("/run sh -c 'exit 3'")
        assert answer.tool[1] == "failed"
        assert answer.text == "It ended with 3."


# What it shows


async def test_the_picture_is_a_png(visit):
    async with visit() as session:
        [image] = [block for block in (await session.say("/image")).blocks if isinstance(block, v1.ImageContent)]
        data = base64.b64decode(image.data)
        assert (image.mime_type, data[:8]) == ("image/png", b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", data[16:24])
        rows = zlib.decompress(data[data.index(b"IDAT") + 4 : data.index(b"IEND") - 8])
        assert len(rows) == height * (1 + 3 * width)


async def test_the_sound_is_a_wav(visit):
    async with visit() as session:
        [audio] = [block for block in (await session.say("/sound")).blocks if isinstance(block, v1.AudioContent)]
        with wave.open(io.BytesIO(base64.b64decode(audio.data))) as sound:
            assert sound.getnframes() / sound.getframerate() == pytest.approx(0.6)


async def test_resources_are_a_link_and_an_embedded_text(visit):
    async with visit() as session:
        _, link, embedded = (await session.say("/resource")).blocks
        assert link.uri == session.folder.as_uri()
        assert embedded.resource.text == "Nothing is lost.\n"


# Asking


async def test_a_form_is_filled_in_and_remembered(visit):
    async with visit() as session:
        session.client.elicitation = v1.ElicitationAcceptAction(
            {"name": "Ada", "colour": "red", "cups": 3, "likes_protocols": True}
        )
        answer = await session.say("/form")
        [form] = session.client.asked
        assert isinstance(form, v1.ElicitationFormMode)
        assert form.requested_schema.required == ["name"]
        assert answer.text == "You are Ada, prefer red, drink 3 cups a day and like protocols."
        assert (await session.say("What is my name?")).text == "You are Ada."


async def test_a_form_may_be_declined(visit):
    async with visit() as session:
        assert (await session.say("/form")).text == "You would rather not say, and that is fine."


async def test_a_page_to_visit_is_completed_once_the_user_agrees(visit):
    async with visit() as session:
        session.client.elicitation = v1.ElicitationAcceptAction()
        await session.say("/url")
        page, done = session.client.asked
        assert isinstance(page, v1.ElicitationUrlMode)
        assert done.elicitation_id == page.elicitation_id


# Settings


async def test_modes_and_options_are_offered_and_kept_in_step(visit):
    async with visit() as session:
        assert session.session.modes.current_mode_id == "ask"
        assert [option.config_id for option in session.session.config_options] == ["mode", "length", "aloud"]
        answer = await session.say("/mode explain")
        assert answer.of(v1.CurrentModeUpdate) == [v1.CurrentModeUpdate(v1.SessionModeId("explain"))]


async def test_on_off_options_are_only_for_clients_that_show_them(visit):
    async with visit(lends=False) as session:
        assert [option.config_id for option in session.session.config_options] == ["mode", "length"]


async def test_options_change_how_it_answers(visit):
    async with visit() as session:
        long = (await session.say("Who are you?")).text
        await session.say("/config length short")
        await session.say("/config aloud on")
        answer = await session.say("Who are you?")
        assert long.startswith(answer.text)
        assert len(answer.text) < len(long)
        assert isinstance(answer.updates[0], v1.AgentThoughtChunk)


async def test_titles_usage_and_notices_are_told(visit):
    async with visit() as session:
        answer = await session.say("/title Rings")
        assert [update.title for update in answer.of(v1.SessionInfoUpdate)] == ["Rings"]
        [usage] = (await session.say("/usage")).of(v1.UsageUpdate)
        assert 0 < usage.used < usage.size
        assert usage.cost.currency == "USD"
        [notice] = (await session.say("/notice")).of(v1.Notice)
        assert notice.title == "This is a notice"


async def test_a_client_without_notices_is_told_in_words(visit):
    async with visit(lends=False) as session:
        answer = await session.say("/notice")
        assert answer.of(v1.Notice) == []
        assert "shows no notices" in answer.text


# How turns go and end


async def test_a_stream_has_as_many_words_as_wanted(visit):
    async with visit() as session:
        assert len((await session.say("/stream 500")).of(v1.AgentMessageChunk)) == 500


@pytest.mark.parametrize("reason", ["max_tokens", "max_turn_requests", "refusal", "end_turn"])
async def test_a_turn_ends_with_the_reason_that_was_asked_for(visit, reason):
    async with visit() as session:
        assert (await session.say(f"/stop {reason}")).stop_reason == reason


async def test_an_error_is_an_error_and_the_session_goes_on(visit):
    async with visit() as session:
        with pytest.raises(PeerError, match="This error was asked for") as raised:
            await session.say("/error")
        assert (raised.value.code, raised.value.data) == (-32603, {"command": "/error"})
        assert (await session.say("say hello")).text == "hello"


async def test_slow_work_is_cancelled_in_its_middle_and_says_so(visit):
    async with visit(pace=0.001) as session:
        prompt = session.sending("/slow 3600")
        await session.heard(v1.ToolCallProgress)
        await session.cancel()
        assert (await prompt).stop_reason == "cancelled"
        last = session.updates[-1]
        assert isinstance(last, v1.AgentMessageChunk)
        assert "I stopped at step" in last.content.text
        statuses = [update.status for update in session.updates if isinstance(update, v1.ToolCallProgress)]
        assert [status for status in statuses if status is not None][-1] == "failed"
        assert (await session.say("say again")).text == "again"


async def test_slow_work_that_is_not_cancelled_finishes(visit):
    async with visit() as session:
        assert (await session.say("/slow 3")).text.endswith("You let me finish.")


async def test_a_cancel_in_the_middle_of_a_command_releases_the_terminal(visit):
    async with visit() as session:
        prompt = session.sending("/run sleep 600")
        await eventually(lambda: session.client.terminals)
        await session.cancel()
        assert (await prompt).stop_reason == "cancelled"
        await eventually(lambda: not session.client.terminals)


async def test_a_session_that_is_kept_is_known_to_the_next_process(visit, tmp_path):
    kept = tmp_path / "sessions.db"
    async with visit(store=kept) as session:
        await session.say("My name is Ada")
        known = session.session.session_id
    async with visit(store=kept) as session:
        await session.peer.request(v1.ResumeSessionRequest(known, str(session.folder)), timeout=30)
        session.session = v1.NewSessionResponse(known)
        assert (await session.say("What is my name?")).text == "You are Ada."
