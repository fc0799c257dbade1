"""What a prompt mentions besides whole files: the working tree's changes, lines of a file, links."""

import pytest

import accord
from accord import v1
from accord.client import mentions
from accord_tools.configuration.trust import is_folder_trusted
from accord_tools.tui import attachments
from accord_tools.tui.attachments import mentioned, working_diff
from tests.tui.conftest import git
from tests.waiting import eventually

TAKES, TAKES_TEXT = v1.PromptCapabilities(embedded_context=True), v1.PromptCapabilities()


def receiving(*, embedded):
    agent, got = accord.Agent("reads", accepts=("embedded",) if embedded else ()), []

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        got.extend(turn.prompt)

    return agent, got


async def test_lines_of_a_file_are_sent_as_a_resource(chat, tree):
    agent, got = receiving(embedded=True)
    async with chat(agent, folder=tree) as it:
        await it.send("look at @a.txt:3-5, please")
        await eventually(lambda: len(got) == 2)
        assert got[1].resource.text == "line 3\nline 4\nline 5\n"
        assert got[1].resource.uri == f"{(tree / 'a.txt').as_uri()}#L3-L5"


async def test_an_agent_that_takes_no_resources_gets_lines_as_text(chat, tree):
    agent, got = receiving(embedded=False)
    async with chat(agent, folder=tree) as it:
        await it.send("look at @a.txt:3")
        await eventually(lambda: len(got) == 2)
        assert got[1].text == "Lines 3 to 3 of a.txt:\n```\nline 3\n```\n"


async def test_the_changes_of_the_working_tree_are_completed_and_sent(chat, tree):
    agent, got = receiving(embedded=True)
    async with chat(agent, folder=tree) as it:
        await it.type("review @di")
        await it.sees("diff", "the changes of the working tree")
        await it.press("tab", "enter")
        await eventually(lambda: len(got) == 2)
        assert "-line 7\n+line seven\n" in got[1].resource.text
        assert "new file, not in git: new.txt" in got[1].resource.text


async def test_a_prompt_whose_mention_cannot_be_read_comes_back_to_the_editor(chat, tmp_path):
    agent, got = receiving(embedded=True)
    async with chat(agent) as it:
        await it.send("review @diff")
        await it.sees("The prompt could not be sent.", "@diff: not a git repository")
        await eventually(lambda: it.app.editor.text == "review @diff")
        assert got == []


async def test_a_file_that_is_written_as_a_whole_is_sent_with_one_enter(chat, tree):
    agent, got = receiving(embedded=True)
    async with chat(agent, folder=tree) as it:
        await eventually(lambda: any(len(paths) for paths in it.app._paths.values()))
        await it.type("@a.txt")
        await it.press("enter")
        await eventually(lambda: len(got) == 2)


def test_a_link_is_sent_as_one(tmp_path):
    [link] = mentioned("see @https://example.org/a?b=c.", tmp_path, TAKES, is_folder_trusted)
    assert (type(link), link.uri) == (v1.ResourceLink, "https://example.org/a?b=c")


def test_a_file_of_that_name_is_no_mention_of_a_part(tmp_path):
    (tmp_path / "diff").write_text("x")
    (tmp_path / "a.txt:1").write_text("x")
    assert mentioned("@diff @a.txt:1 @missing.txt:3 me@example.org:1", tmp_path, TAKES, is_folder_trusted) == []


@pytest.mark.parametrize(
    ("mention", "said"),
    [("@a.txt:9-3", "the first line must be"), ("@a.txt:0", "the first line must be"), ("@a.txt:99", "fewer than 99")],
)
def test_lines_that_do_not_exist_are_named(tree, mention, said):
    with pytest.raises(ValueError, match=said):
        mentioned(mention, tree, TAKES, is_folder_trusted)


def test_a_file_outside_of_the_folder_is_not_read(tree, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "secret.txt"
    other.write_text("secret\n")
    assert mentioned(f"@{other}:1 @../{other.parent.name}/secret.txt:1", tree, TAKES, is_folder_trusted) == []


def test_fences_around_lines_are_longer_than_those_within(tmp_path):
    (tmp_path / "a.md").write_text("````\ncode\n````\n")
    [block] = mentioned("@a.md:1-3", tmp_path, TAKES_TEXT, is_folder_trusted)
    assert block.text.splitlines()[1] == "`````"


def test_a_tree_without_a_commit_and_one_without_changes(tmp_path):
    git(tmp_path, "init", "--quiet")
    with pytest.raises(ValueError, match="no changes since the last commit"):
        working_diff(tmp_path, lambda _: True)
    (tmp_path / "a.txt").write_text("a\n")
    git(tmp_path, "add", ".")
    assert "+a\n" in working_diff(tmp_path, lambda _: True)


def test_the_chat_finds_the_mentions_that_a_prompt_does():
    """The pattern is written twice: `session.prompt(mentions=True)` looks for files, the chat for their lines."""
    assert attachments.MENTION.pattern == mentions.MENTION.pattern
