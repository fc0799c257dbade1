"""Version 1 in version 2 and back: what comes back, and what is refused.

The promise of `accord.schema.conversion` is one property over every type of version 1; its exceptions are a table here,
as they are there.
"""

import re

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from accord.errors import ConversionError
from accord.schema import codec, v1, v2
from accord.schema.base import Request, Shape, Unknown
from accord.schema.conversion import all_to_v1, to_v1, to_v2
from accord.schema.type_tree import fields_of
from tests.schema.strategies import Dice, Maker, covering, rolled

SESSION = v1.SessionId("s-1")
MESSAGE = v1.MessageId("m-1")
TOOL = v1.ToolCallId("t-1")
CLIENT = v1.Implementation("editor", "1.0")


def classes(version):
    return {name: cls for name, cls in vars(version).items() if isinstance(cls, type) and issubclass(cls, Shape)}


V1, V2 = classes(v1), classes(v2)


def some(cls):
    """Values of this type that show all that it can have, and a few more."""
    plain = covering(cls) + [Maker(rolled((cls, number))).make(cls) for number in range(10)]
    return [codec.convert(value, cls) for value in plain]


def converted(convert, values):
    """Those that are not refused, each with what it was."""
    for value in values:
        try:
            yield value, convert(value)
        except ConversionError:
            continue


# There and back


def comes_back_as(value):
    """What a value of version 1 is after version 2: the same, but for the documented exceptions."""
    if isinstance(value, list):
        return [comes_back_as(item) for item in value]
    if isinstance(value, dict):
        return {key: comes_back_as(item) for key, item in value.items()}
    if not isinstance(value, Shape):
        return value
    inner = {field.name: comes_back_as(getattr(value, field.name)) for field in fields_of(type(value))}
    return EXCEPTIONS.get(type(value), lambda value: value)(type(value)(**inner))


def as_progress(call):
    fields = msgspec.structs.asdict(call)
    return v1.ToolCallProgress(**{**fields, "content": call.content or None, "locations": call.locations or None})


def as_plan(update):
    match update.plan:
        case v1.PlanItems(plan_id="main", meta=None):
            return v1.Plan(update.plan.entries, meta=update.meta)
    return update


def started(response):
    options = response.config_options
    if options is None:
        older = (response.modes, getattr(response, "models", None))
        options = [to_v1(to_v2(it)) for it in older if it is not None]
    if isinstance(response, v1.LoadSessionResponse):
        return v1.ResumeSessionResponse(None, options or None, meta=response.meta)
    if isinstance(response, v1.SessionOptionsResponse):
        return replace(response, modes=None, config_options=options or None)
    return replace(response, modes=None, models=None, config_options=options or None)


def initialized(response):
    logout = v1.LogoutCapabilities() if response.auth_methods else None
    capabilities = response.agent_capabilities
    auth = replace(capabilities.auth, logout=logout)
    return replace(response, agent_capabilities=replace(capabilities, auth=auth))


SHOWN_BY_EVERY_CLIENT = v1.ClientSessionCapabilities(
    compaction=v1.CompactionCapabilities(),
    config_options=v1.SessionConfigOptionsCapabilities(boolean=v1.BooleanConfigOptionCapabilities()),
    notices=v1.NoticeCapabilities(),
    cursors=v1.SessionCursorsCapabilities(),
)

EXCEPTIONS = {
    v1.ToolCall: as_progress,
    v1.PlanUpdate: as_plan,
    v1.NewSessionResponse: started,
    v1.LoadSessionResponse: started,
    v1.ResumeSessionResponse: started,
    v1.ForkSessionResponse: started,
    v1.SessionOptionsResponse: started,
    v1.SessionModeState: lambda modes: to_v1(to_v2(modes)),
    v1.SessionMode: to_v2,
    v1.SessionModelState: lambda models: to_v1(to_v2(models)),
    v1.ModelInfo: to_v2,
    v1.McpCapabilities: lambda mcp: replace(mcp, sse=False),
    v1.AgentAuthCapabilities: lambda auth: replace(auth, logout=None),
    v1.AgentCapabilities: lambda agent: replace(agent, nes=None, position_encoding=None),
    v1.InitializeResponse: initialized,
    v1.InitializeProxyResponse: initialized,
    v1.ClientCapabilities: lambda client: v1.ClientCapabilities(
        auth=client.auth,
        elicitation=client.elicitation,
        session=replace(SHOWN_BY_EVERY_CLIENT, prompt_suggestions=client.session and client.session.prompt_suggestions),
        meta=client.meta,
    ),
}


def is_a_value(value):
    """Whether this value is what its type can hold: it survives being written and read."""
    return codec.decode(codec.encode(value), type(value)) == value


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(sorted(V1)), st.randoms(use_true_random=True))
def test_what_version_2_can_say_comes_back_as_it_was(name, random):
    made = codec.convert(Maker(Dice(random.randrange)).make(V1[name]), V1[name])
    for value, there in converted(to_v2, [made]):
        assert is_a_value(there)
        assert to_v1(there) == comes_back_as(value)


@pytest.mark.parametrize("name", sorted(V1))
def test_every_type_of_version_1_comes_back_or_is_refused_by_its_name(name):
    values = some(V1[name])
    accepted = list(converted(to_v2, values))
    assert bool(accepted) == (name not in NEVER_IN_V2)
    for value, there in accepted:
        assert is_a_value(there)
        assert to_v1(there) == comes_back_as(value)
    if name in NEVER_IN_V2:
        with pytest.raises(ConversionError, match=f"^{name} cannot be expressed in version 2: "):
            to_v2(values[0])


@pytest.mark.parametrize("name", sorted(V2))
def test_every_type_of_version_2_becomes_values_of_version_1_or_is_refused_by_its_name(name):
    values = some(V2[name])
    accepted = list(converted(all_to_v1, values))
    assert bool(accepted) == (name not in NEVER_IN_V1)
    for _, here in accepted:
        assert all(is_a_value(each) and type(each) in V1.values() for each in here)
    if name in NEVER_IN_V1:
        with pytest.raises(ConversionError, match=f"^{name} cannot be expressed in version 1: "):
            to_v1(values[0])


OF_A_CLIENT_S_FILES_AND_TERMINALS = {
    "FileSystemCapabilities",
    *(f"{what}{kind}" for what in ("ReadTextFile", "WriteTextFile") for kind in ("Request", "Response")),
    *(
        f"{what}{kind}"
        for what in ("CreateTerminal", "TerminalOutput", "WaitForTerminalExit", "KillTerminal", "ReleaseTerminal")
        for kind in ("Request", "Response")
    ),
    "Terminal",
}
OF_MODELS = {"SetSessionModelRequest", "SetSessionModelResponse"}
OF_MODES = {"SetSessionModeRequest", "SetSessionModeResponse", "CurrentModeUpdate"}
WHAT_A_CLIENT_OF_VERSION_2_ALWAYS_SHOWS = {
    "BooleanConfigOptionCapabilities",
    "ClientSessionCapabilities",
    "CompactionCapabilities",
    "NoticeCapabilities",
    "PlanCapabilities",
    "SessionConfigOptionsCapabilities",
    "SessionCursorsCapabilities",
    "SubagentCapabilities",
}
WHAT_AN_AGENT_OF_VERSION_2_ALWAYS_HAS = {
    "LogoutCapabilities",
    "SessionCapabilities",
    "SessionCloseCapabilities",
    "SessionListCapabilities",
    "SessionResumeCapabilities",
}
WRAPPERS = {"ProxySuccessorNotification", "ProxySuccessorRequest"}
OLDER_FORMS = {
    name
    for name, cls in V1.items()
    if cls.__module__ == "accord.schema.v1_nes"
    or re.search("Nes|McpConnection|onnectMcp|AnyMcp|PositionEncoding|TextDocumentSync", name)
} | {"AuthEnvVar", "AuthMethodEnvVar", "McpServerSse"}

NEVER_IN_V2 = (
    OF_A_CLIENT_S_FILES_AND_TERMINALS
    | OF_MODELS
    | OF_MODES
    | WHAT_A_CLIENT_OF_VERSION_2_ALWAYS_SHOWS
    | WHAT_AN_AGENT_OF_VERSION_2_ALWAYS_HAS
    | WRAPPERS
    | OLDER_FORMS
)

MARKERS_THAT_ARE_BOOLEANS = {
    "McpAcpCapabilities",
    "McpHttpCapabilities",
    "McpStdioCapabilities",
    "PromptAudioCapabilities",
    "PromptEmbeddedContextCapabilities",
    "PromptImageCapabilities",
    "TerminalAuthCapabilities",
}
OF_AN_AGENT_S_TERMINALS = {
    "CancelTerminalRequest",
    "CancelTerminalResponse",
    "Terminal",
    "TerminalCancelCapabilities",
    "TerminalCapabilities",
    "TerminalOutput",
    "TerminalOutputChunk",
    "TerminalSize",
    "TerminalUpdate",
}
OF_TOOL_CALLS = {
    "CancelToolCallRequest",
    "CancelToolCallResponse",
    "ToolCallCancelCapabilities",
    "ToolCallCapabilities",
    "ToolCallContentChunk",
}
OF_BACKGROUND_WORK = {"BackgroundSubagent", "BackgroundTerminal", "BackgroundToolCall"}
PARTS_OF_WHAT_CAN_BE_SAID = {
    "ClientSessionCapabilities",
    "CommandPermissionSubject",
    "CommandsCapabilities",
    "CommandsSkillCapabilities",
    "DiffAdd",
    "DiffCopy",
    "DiffDelete",
    "DiffModify",
    "DiffMove",
    "DiffPatch",
    "DiffPathChange",
    "DiffPathPairChange",
    "PromptSkillCapabilities",
    "PromptSkillInlineCapabilities",
    "ReplayComplete",
    "ReplayFromStart",
    "SessionCapabilities",
    "SessionNotFoundErrorData",
    "SetSessionConfigOptionRequest",
    "Skill",
    "ToolCallPermissionSubject",
    "UnsupportedProtocolVersionErrorData",
}
WITH_A_MEANING_OF_THEIR_OWN = {"Diff", "SessionStateUpdate"}
"""Random values of these say nothing; they have tests of their own below."""

NEVER_IN_V1 = (
    MARKERS_THAT_ARE_BOOLEANS
    | OF_AN_AGENT_S_TERMINALS
    | OF_TOOL_CALLS
    | OF_BACKGROUND_WORK
    | PARTS_OF_WHAT_CAN_BE_SAID
    | WITH_A_MEANING_OF_THEIR_OWN
    | WRAPPERS
    | {"PromptResponse"}
)


# One by one


def refuses(convert, value, *words):
    with pytest.raises(ConversionError) as refused:
        convert(value)
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_what_belongs_to_no_version_is_the_same_in_both():
    class Greet(Request[str], method="_example.com/greet"):
        name: str

    for value in (Greet("you"), "text", 7, None, UNSET, {"any": ["json"]}, Unknown("hologram", {"type": "hologram"})):
        assert to_v2(value) is value
        assert to_v1(value) is value


def test_an_unknown_variant_passes_through_with_what_holds_it():
    strange = Unknown("hologram", {"sessionUpdate": "hologram", "depth": 3})
    update = v1.SessionNotification(SESSION, strange)
    assert to_v2(update) == v2.UpdateSessionNotification(SESSION, strange)
    assert to_v1(to_v2(update)) == update


@pytest.mark.parametrize(
    ("convert", "value"),
    [
        (to_v2, v1.SessionNotification(SESSION, Unknown("state_update", {"sessionUpdate": "state_update"}))),
        (to_v1, v2.UpdateSessionNotification(SESSION, Unknown("plan", {"sessionUpdate": "plan", "entries": []}))),
        (to_v1, v2.NewSessionRequest("/", [Unknown("sse", {"type": "sse", "name": "n", "url": "u"})])),
        (to_v2, v1.PlanUpdate(Unknown("sketch", {"type": "sketch"}))),  # without the id that every plan has
    ],
)
def test_an_unknown_variant_takes_on_no_meaning_and_lacks_nothing_there(convert, value):
    refuses(convert, value, "does not fit")


def test_a_plan_is_the_plan_main_and_other_plans_stay_others():
    plan = v1.Plan.of("Read", "Write")
    assert to_v2(plan).plan.plan_id == "main"
    assert to_v1(to_v2(plan)) == plan
    assert to_v1(v2.PlanUpdate.of(v2.PlanId("second"), "Read")) == v1.PlanUpdate(
        v1.PlanItems(v1.PlanId("second"), [v1.PlanEntry.of("Read")])
    )
    refuses(to_v1, v2.PlanUpdate.of(v2.PlanId("main"), v2.PlanEntry.of("Read", status="cancelled")), "PlanEntry.status")


def test_a_tool_call_begins_and_changes_with_one_upsert():
    begun = v1.ToolCall(TOOL, "Read", "read", locations=[v1.ToolCallLocation("/a", 3)])
    assert to_v2(begun) == v2.ToolCallProgress(TOOL, "Read", "read", locations=[v2.ToolCallLocation("/a", 3)])
    emptied = v1.ToolCallProgress(TOOL, content=[])
    assert to_v2(emptied) == v2.ToolCallProgress(TOOL, content=[])
    assert to_v1(to_v2(emptied)) == emptied


def test_what_a_tool_call_is_after_clearing_is_said_in_version_1_and_what_it_has_no_words_for_is_refused():
    cleared = v2.ToolCallProgress(TOOL, kind=None, status=None, content=None, capabilities=None)
    assert to_v1(cleared) == v1.ToolCallProgress(TOOL, kind="other", status="pending", content=[])
    refuses(to_v1, v2.ToolCallProgress(TOOL, title=None), "ToolCallProgress.title", "cleared")
    refuses(to_v1, v2.ToolCallProgress(TOOL, raw_input=None), "ToolCallProgress.rawInput", "cleared")
    refuses(to_v1, v2.ToolCallProgress(TOOL, meta=None), "ToolCallProgress._meta", "cleared")
    refuses(to_v1, v2.ToolCallProgress(TOOL, status="paused"), "ToolCallProgress.status", "'paused'")
    controls = v2.ToolCallCapabilities(cancel=v2.ToolCallCancelCapabilities())
    refuses(to_v1, v2.ToolCallProgress(TOOL, capabilities=controls), "ToolCallProgress.capabilities")


texts = st.text(st.sampled_from("ab\n\r \\-+@\u2028é\ud83d"), max_size=40)


@given(st.none() | texts, texts)
def test_a_diff_comes_back_with_its_whole_texts(old, new):
    diff = v1.Diff("/home/me/a b.txt", new, old)
    there = to_v2(diff)
    assert [type(change) for change in there.changes] == [v2.DiffAdd if old is None else v2.DiffModify]
    assert to_v1(there) == diff


def test_a_diff_of_two_files_is_two_diffs():
    one, other = v1.Diff("/a", "new\n", "old\n"), v1.Diff("/b", "here\n")
    there = [to_v2(one), to_v2(other)]
    both = v2.Diff(
        [there[1].changes[0], there[0].changes[0]], v2.DiffPatch("git_patch", "".join(d.patch.text for d in there))
    )
    assert all_to_v1(both) == [other, one]
    assert to_v1(v2.ToolCallProgress(TOOL, content=[both])).content == [other, one]
    refuses(to_v1, both, "Diff", "2 values")


@pytest.mark.parametrize(
    ("diff", "why"),
    [
        (v2.Diff([]), "it has no changes"),
        (v2.Diff([v2.DiffModify("/a")]), "it needs the whole texts"),
        (v2.Diff([v2.DiffModify("/a")], v2.DiffPatch("ed", "1d")), "it needs the whole texts"),
        (v2.Diff([v2.DiffModify("/a")], v2.DiffPatch("git_patch", "hello")), "not a git patch"),
        (v2.Diff.of("/a", "\n" * 10 + "x", "\n" * 10), "lines are missing"),
        (replace(v2.Diff.of("/a", "x", "y"), changes=[v2.DiffDelete("/a")]), "a different change"),
        (replace(to_v2(v1.Diff("/a", "", "y", deleted=True)), changes=[v2.DiffModify("/a")]), "a different change"),
        (replace(v2.Diff.of("/a", "x", "y"), changes=[v2.DiffMove("/b", "/a")]), "deleted file"),
        (replace(v2.Diff.of("/a", "x", "y"), changes=[v2.DiffAdd("/a")]), "a different change"),
        (replace(v2.Diff.of("/a", "x", "y"), changes=[v2.DiffModify("/a", "symlink")]), "symlink"),
        (replace(v2.Diff.of("/a", "x", "y"), changes=[v2.DiffModify("/a"), v2.DiffModify("/b")]), "once"),
        (replace(v2.Diff.of("/a", "x", "y"), changes=[Unknown("chmod", {"operation": "chmod"})]), "deleted file"),
    ],
)
def test_a_diff_that_is_not_two_whole_texts_is_refused(diff, why):
    refuses(all_to_v1, diff, why)


@pytest.mark.parametrize("old", ["", "one line\n", "no newline at the end", None])
def test_a_deleted_file_is_deleted_in_both_versions(old):
    deleted = v1.Diff("/a", "", old, deleted=True)
    there = to_v2(deleted)
    assert there.changes == [v2.DiffDelete("/a", "text")]
    assert to_v1(there) == deleted


def test_the_patch_of_a_deleted_file_is_one_that_git_writes():
    assert to_v2(v1.Diff("/a", "", "x\n", deleted=True)).patch.text == (
        "diff --git /a /a\ndeleted file mode 100644\n"
        "index 587be6b4c3f93f93c489c0111bba5596147a26cb..0000000000000000000000000000000000000000\n"
        "--- /a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    )


def test_a_deleted_file_with_text_after_is_refused():
    refuses(to_v2, v1.Diff("/a", "text", "x", deleted=True), "Diff", "no text after")


def test_a_chunk_needs_an_id_and_then_is_the_same():
    refuses(to_v2, v1.AgentMessageChunk.of("Hi"), "AgentMessageChunk", "messageId")
    chunk = v1.AgentMessageChunk.of("Hi", MESSAGE)
    assert to_v2(chunk) == v2.AgentMessageChunk.of("Hi", MESSAGE)


@pytest.mark.parametrize(
    ("whole", "chunk"),
    [
        (v2.UserMessage, v1.UserMessageChunk),
        (v2.AgentMessage, v1.AgentMessageChunk),
        (v2.AgentThought, v1.AgentThoughtChunk),
    ],
)
def test_a_whole_message_is_a_chunk_for_each_block(whole, chunk):
    assert all_to_v1(whole.of(MESSAGE, "a", "b")) == [chunk.of("a", MESSAGE), chunk.of("b", MESSAGE)]
    assert to_v1(whole.of(MESSAGE, "a")) == chunk.of("a", MESSAGE)
    assert all_to_v1([whole.of(MESSAGE, "a", "b"), whole.of(MESSAGE, "c")]) == [
        chunk.of(text, MESSAGE) for text in ("a", "b", "c")
    ]
    update = v2.UpdateSessionNotification(SESSION, whole.of(MESSAGE, "a", "b"), meta={"n": 1})
    assert [each.update for each in all_to_v1(update)] == all_to_v1(update.update)
    assert [each.meta for each in all_to_v1(update)] == [{"n": 1}] * 2


@pytest.mark.parametrize(
    "message",
    [
        v2.AgentMessage(MESSAGE),
        v2.AgentMessage(MESSAGE, []),
        v2.AgentMessage(MESSAGE, None),
        v2.AgentMessage(MESSAGE, meta={"a": 1}),
        replace(v2.AgentMessage.of(MESSAGE, "a"), meta=None),
    ],
)
def test_a_message_update_that_does_not_only_add_is_refused(message):
    refuses(to_v1, message, "AgentMessage", "only content can be added")


def test_the_question_of_version_1_has_the_title_of_its_tool_call():
    options = [v1.PermissionOption.of("allow_once")]
    asked = v1.RequestPermissionRequest(SESSION, v1.ToolCallUpdate(TOOL, "Write /a"), options)
    there = to_v2(asked)
    assert (there.title, there.subject.tool_call.title) == ("Write /a", "Write /a")
    assert to_v1(there) == asked
    untitled = replace(there, subject=v2.ToolCallPermissionSubject(v2.ToolCallUpdate(TOOL)))
    assert to_v1(untitled) == asked


def test_a_question_that_is_more_than_its_tool_call_is_refused():
    about = v2.ToolCallPermissionSubject(v2.ToolCallUpdate(TOOL, "Write /a"))
    asked = v2.RequestPermissionRequest(SESSION, "Write /a", [], subject=about)
    refuses(to_v1, replace(asked, title="Really?"), "RequestPermissionRequest.title")
    refuses(to_v1, replace(asked, description="It is read-only."), "RequestPermissionRequest.description")
    refuses(to_v1, replace(asked, subject=None), "RequestPermissionRequest.subject")
    refuses(to_v1, replace(asked, subject=v2.CommandPermissionSubject("ls", "/")), "RequestPermissionRequest.subject")
    refuses(to_v2, v1.RequestPermissionRequest(SESSION, v1.ToolCallUpdate(TOOL), []), "title")


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"])
def test_the_answer_to_a_prompt_is_an_idle_state_update(reason):
    answer = v1.PromptResponse(reason, v1.Usage(3, 2, 1))
    assert to_v2(answer) == v2.SessionStateUpdate("idle", reason, v1.Usage(3, 2, 1))
    assert to_v1(to_v2(answer)) == answer


def test_an_error_that_ended_a_turn_is_the_error_that_answers_the_prompt():
    error = v2.Error(-32002, "Resource not found", v2.SessionNotFoundErrorData(SESSION))
    failed = v2.SessionStateUpdate("idle", "error", error=error)
    assert to_v1(failed) == v1.Error(-32002, "Resource not found", {"sessionId": "s-1"})
    assert to_v2(to_v1(failed)) == error


@pytest.mark.parametrize(
    "update",
    [
        v2.SessionStateUpdate("running"),
        v2.SessionStateUpdate("requires_action"),
        v2.SessionStateUpdate("unknown"),
        v2.SessionStateUpdate("idle"),
        v2.SessionStateUpdate("idle", "_quota"),
        v2.SessionStateUpdate("idle", "error"),
        v2.SessionStateUpdate("idle", "end_turn", background=[v2.BackgroundToolCall(TOOL)]),
        v2.UpdateSessionNotification(SESSION, v2.SessionStateUpdate("idle", "end_turn")),
        v2.PromptResponse(MESSAGE),
    ],
)
def test_a_state_that_is_no_answer_to_a_prompt_is_refused(update):
    refuses(to_v1, update, "cannot be expressed in version 1")


def test_capabilities_are_the_same_in_booleans_and_in_markers():
    sessions = v1.SessionCapabilities(
        list=v1.SessionListCapabilities(),
        resume=v1.SessionResumeCapabilities(),
        close=v1.SessionCloseCapabilities(),
        delete=v1.SessionDeleteCapabilities(),
    )
    agent = v1.AgentCapabilities(
        load_session=True,
        prompt_capabilities=v1.PromptCapabilities(image=True),
        mcp_capabilities=v1.McpCapabilities(http=True),
        session_capabilities=sessions,
    )
    assert to_v2(agent) == v2.AgentCapabilities(
        session=v2.SessionCapabilities(
            prompt=v2.PromptCapabilities(image=v2.PromptImageCapabilities()),
            mcp=v2.McpCapabilities(stdio=v2.McpStdioCapabilities(), http=v2.McpHttpCapabilities()),
            delete=v2.SessionDeleteCapabilities(),
        )
    )
    assert to_v1(to_v2(agent)) == agent
    lacking = replace(agent, load_session=False, session_capabilities=replace(sessions, close=None))
    refuses(to_v2, lacking, "load, close")


def test_what_an_agent_of_version_1_always_has_is_not_claimed_for_one_of_version_2():
    refuses(to_v1, v2.AgentCapabilities(), "without session")
    refuses(to_v1, v2.AgentCapabilities(session=v2.SessionCapabilities()), "without stdio")


def test_a_client_s_files_are_not_offered_and_what_every_client_shows_is():
    lends = v1.ClientCapabilities(
        fs=v1.FileSystemCapabilities(read_text_file=True), terminal=True, auth=v1.AuthCapabilities(terminal=True)
    )
    assert to_v2(lends) == v2.ClientCapabilities(auth=v2.ClientAuthCapabilities(terminal=v2.TerminalAuthCapabilities()))
    assert to_v1(to_v2(lends)) == v1.ClientCapabilities(
        auth=v1.AuthCapabilities(terminal=True), session=SHOWN_BY_EVERY_CLIENT
    )


def test_the_first_call_says_who_asks_and_who_answers():
    refuses(to_v2, v1.InitializeRequest(1), "InitializeRequest", "info")
    asked = v1.InitializeRequest(1, client_info=CLIENT)
    assert to_v2(asked) == v2.InitializeRequest(1, CLIENT)
    answered = v2.InitializeResponse(
        2,
        CLIENT,
        v2.AgentCapabilities(v2.SessionCapabilities(mcp=v2.McpCapabilities(stdio=v2.McpStdioCapabilities()))),
        [v2.AuthMethodTerminal(v2.AuthMethodId("t"), "Terminal", env=[v2.EnvVariable("A", "1")])],
    )
    here = to_v1(answered)
    assert here.agent_capabilities.auth.logout == v1.LogoutCapabilities()
    assert here.auth_methods == [v1.AuthMethodTerminal(v1.AuthMethodId("t"), "Terminal", env={"A": "1"})]
    assert to_v2(here) == answered
    without_logout = replace(here, agent_capabilities=replace(here.agent_capabilities, auth=v1.AgentAuthCapabilities()))
    refuses(to_v2, without_logout, "logout")


def test_loading_is_resuming_with_a_replay():
    loading = v1.LoadSessionRequest(SESSION, "/", [])
    assert to_v2(loading) == v2.ResumeSessionRequest(SESSION, "/", replay_from=v2.ReplayFromStart())
    assert to_v1(to_v2(loading)) == loading
    assert to_v1(v2.ResumeSessionRequest(SESSION, "/")) == v1.ResumeSessionRequest(SESSION, "/")
    part = Unknown("message", {"type": "message", "messageId": "m"})
    refuses(to_v1, v2.ResumeSessionRequest(SESSION, "/", replay_from=part), "replayFrom")


def test_modes_are_a_config_option_unless_there_are_options_that_say_the_same():
    modes = v1.SessionModeState(v1.SessionModeId("ask"), [v1.SessionMode(v1.SessionModeId("ask"), "Ask")])
    [option] = to_v2(v1.NewSessionResponse(SESSION, modes)).config_options
    assert (option.config_id, option.category, option.current_value) == ("mode", "mode", "ask")
    model = v1.SessionConfigBoolean(v1.SessionConfigId("fast"), "Fast", current_value=True)
    assert to_v2(v1.NewSessionResponse(SESSION, modes, [model])).config_options == [to_v2(model)]
    refuses(to_v2, v1.SetSessionModeRequest(SESSION, v1.SessionModeId("ask")), "config option")
    refuses(to_v2, v1.SessionNotification(SESSION, v1.CurrentModeUpdate(v1.SessionModeId("ask"))), "config option")


def test_commands_that_come_with_a_session_are_not_dropped():
    response = v2.NewSessionResponse(SESSION, available_commands=[v2.Command.of("plan", "Makes a plan")])
    refuses(to_v1, response, "NewSessionResponse.availableCommands")
    update = v2.AvailableCommandsUpdate(response.available_commands)
    assert to_v1(update) == v1.AvailableCommandsUpdate([v1.AvailableCommand.of("plan", "Makes a plan")])


def test_what_is_out_of_bounds_there_is_refused():
    refuses(to_v2, v1.ToolCallLocation("/a", 0), "ToolCallLocation.line")
    refuses(to_v1, v2.TerminalExitStatus(-1), "TerminalExitStatus.exitCode")
    refuses(to_v1, v2.ElicitationAcceptAction({"a": {"deep": 1}}), "ElicitationAcceptAction.content")
    refuses(to_v2, v1.CancelRequestNotification(None), "CancelRequestNotification.requestId")
