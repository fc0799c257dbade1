"""Settings, keys and commands of the chat."""

import re

import pytest

import accord
from accord_tools.configuration.agents_file import user_file
from accord_tools.configuration.resolve_agent import KnownAgents
from accord_tools.tui import key_bindings, slash
from accord_tools.tui.chat_app import ChatApp
from accord_tools.tui.chat_settings import parse, read_settings
from tests.waiting import eventually


def answering():
    agent = accord.Agent("any")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("yes")

    return agent


def test_every_key_and_every_command_has_its_action():
    for action in [key.action.partition("(")[0] for key in key_bindings.KEYS if key.action]:
        assert callable(getattr(ChatApp, f"action_{action}"))
    for command in slash.COMMANDS:
        assert callable(getattr(ChatApp, f"action_{command.action}"))


def test_no_two_keys_are_the_same():
    used = [name for key in key_bindings.KEYS if key.action for name in key.key.split(",")]
    assert len(used) == len(set(used))


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"them": "nord"}, "unknown key 'them'; did you mean theme?"),
        ({"theme": 3}, "Expected `str"),
        ({"keys": {"session": "f2"}}, "keys has no action 'session'; did you mean sessions?"),
        ([], "must be a table"),
    ],
)
def test_a_wrong_setting_is_named(table, problem):
    with pytest.raises(accord.ConfigurationError, match=re.escape(problem)):
        parse(table, "file")


def test_the_settings_stand_beside_the_named_agents(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCORD_CONFIG", str(tmp_path / "agents.toml"))
    user_file().write_text('[chat]\ntheme = "nord"\n[agents.mine]\ncommand = "mine --acp"\n')
    assert read_settings().theme == "nord"
    assert KnownAgents.of(tmp_path).names == ["mine"]


async def test_a_key_can_be_given_another_place_and_a_theme_is_used(chat):
    async with chat(answering(), keys={"help": "f2"}, theme="nord") as it:
        assert it.app.theme == "nord"
        await it.press("f2")
        await it.sees("Keys")


async def test_the_theme_can_be_changed_while_the_chat_runs(chat):
    async with chat(answering()) as it:
        await it.send("go")
        await it.idle()
        await it.send("/theme gruvbox")
        await eventually(lambda: it.app.theme == "gruvbox")
        await it.sees("yes")


async def test_a_setting_that_is_chosen_holds_at_once_and_stands_in_the_file_of_the_user(chat, tmp_path, monkeypatch):
    monkeypatch.setenv("ACCORD_CONFIG", str(tmp_path / "agents.toml"))
    user_file().write_text('# mine\n[chat]\nbell = false  # quiet\n\n[agents.agent]\ncommand = "x"\n')
    async with chat(answering(), bell=False) as it:
        await it.send("/settings")
        await it.sees("bell", "off · from agents.toml", "max cost", "no limit")
        for row, value in (("cost", "0.5"), ("allow here", "edit"), ("theme", "nord"), ("bell", "on")):
            for text in (row, value):
                screen = it.app.screen
                await it.type(text)
                await it.press("enter")
                await eventually(lambda: it.app.screen not in (screen, it.app.screen_stack[0]))  # noqa: B023
        await eventually(lambda: it.app.options.bell)
        assert it.app.theme == "nord"
        assert it.front.connection.consent.level == "edit"
        assert it.front.connection.options.budget == accord.Budget(max_cost=0.5)
    settings = read_settings()
    assert (settings.max_cost, settings.theme, settings.bell) == (0.5, "nord", True)
    assert f'[allow]\n"{tmp_path}" = "edit"' in user_file().read_text()
    assert user_file().read_text().startswith("# mine\n[chat]\n")
    assert "bell = true # quiet" in user_file().read_text()


async def test_a_setting_that_cannot_be_is_refused_and_nothing_is_written(chat, tmp_path, monkeypatch):
    monkeypatch.setenv("ACCORD_CONFIG", str(tmp_path / "agents.toml"))
    async with chat(answering()) as it:
        await it.send("/settings")
        await it.sees("max turns")
        await it.type("turns")
        await it.press("enter")
        await it.sees("type a value")
        await it.type("0")
        await it.press("enter")
        await it.sees("must be positive")
    assert not user_file().exists()
