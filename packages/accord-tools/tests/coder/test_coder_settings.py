"""The settings of the coding agent: its command line, the project's file and the user's."""

import os

import pytest
from msgspec.structs import replace

import accord
from accord.paths import config_folder
from accord.project.git import find_repository
from accord.project.project import Project
from accord_tools.cli import main
from accord_tools.coder.coder_settings import CoderFile, CoderSettings, Layer, parse, project_layer, user_layer
from accord_tools.coder.coding_agent import coding_agent
from accord_tools.coder.open_model import FACTS, ModelSettings, model_name
from accord_tools.configuration.trust import trust_folder
from tests.coder.conftest import call, text_of


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "config" / "accord").mkdir(parents=True)


@pytest.fixture
def trusted(project):
    """A project whose repository the user trusts, with a folder for its settings."""
    (project / ".git").mkdir()
    (project / ".accord").mkdir()
    trust_folder(find_repository(project))
    return project


def write(text):
    (config_folder() / "agent.toml").write_text(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("modell = 'x'", "unknown key 'modell'; did you mean model?"),
        ("[providers.a]\nbase_ulr = 'x'", "[providers.a]: unknown key 'base_ulr'; did you mean base_url?"),
        ("[models.a]\nprices = [1, 2]", "[models.a]: unknown key 'prices'; did you mean price?"),
        ("[mcp.a]\nargs = []", "[mcp.a] must have either 'command' or 'url'"),
        ("mode = 'free'", "Invalid enum value 'free'"),
        ("[[rules]]\nanswer = 'allow'\nnames = ['x']", "rule 1: unknown key 'names'"),
        ("mode = ", "my.toml: "),
    ],
)
def test_a_wrong_file_is_refused_with_its_place_and_what_may_be_meant(text, says):
    with pytest.raises(accord.ConfigurationError) as raised:
        parse(text, "my.toml")
    assert str(raised.value).startswith("my.toml: ")
    assert says in str(raised.value)


def test_the_command_line_counts_more_than_the_project_and_that_more_than_the_user(trusted):
    write("model = 'mine'\neffort = 'low'\nmode = 'auto'\n[models.mine]\ncontext = 5\n")
    (trusted / ".accord" / "agent.toml").write_text("model = 'ours'\neffort = 'high'\n[models.ours]\ncontext = 7\n")
    settings = CoderSettings([Layer("flags", CoderFile(effort="medium")), user_layer()]).with_project(trusted)
    assert settings.value("effort") == ("medium", "flags")
    assert settings.value("model") == ("ours", str(trusted / ".accord" / "agent.toml"))
    assert settings.value("mode") == ("auto", str(config_folder() / "agent.toml"))
    assert settings.value("store") == (None, "")
    assert {name: it.context for name, it in settings.model_settings.models.items()} == {"mine": 5, "ours": 7}


def test_a_session_begins_with_the_first_model_that_is_described_if_none_is_named(monkeypatch):
    monkeypatch.delenv("ACCORD_MODEL", raising=False)
    described = CoderSettings([Layer("mine", parse("[models.b]\n[models.a]", "mine"))]).model_settings
    assert model_name(described, "openai") == "b"
    assert model_name(replace(described, model="c"), "openai") == "c"
    assert model_name(ModelSettings(), "openai") == FACTS["openai"].default_model


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mode = 'auto'", "'mode' belongs in your own file"),
        ("[providers.a]\nbase_url = 'http://evil'", "'providers' belongs in your own file"),
        ("[[rules]]\nanswer = 'allow'", "a rule of a project must have the answer 'ask' or 'reject'"),
    ],
)
def test_a_project_s_file_makes_the_agent_no_less_strict(trusted, text, says):
    (trusted / ".accord" / "agent.toml").write_text(text)
    with pytest.raises(accord.ConfigurationError, match=says):
        project_layer(trusted)


def test_the_file_of_a_project_that_the_user_does_not_trust_is_not_read(project):
    (project / ".git").mkdir()
    (project / ".accord").mkdir()
    (project / ".accord" / "agent.toml").write_text("not TOML")
    assert project_layer(project) is None


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_the_file_of_a_project_is_read_through_no_link_out_of_it(trusted, tmp_path):
    (tmp_path / "outside.toml").write_text("model = 'x'")
    (trusted / ".accord" / "agent.toml").symlink_to(tmp_path / "outside.toml")
    with pytest.raises(accord.ConfigurationError, match="outside"):
        project_layer(trusted)
    assert Project([tmp_path]).size(tmp_path / "outside.toml")


def test_the_command_shows_each_value_with_where_it_comes_from(capsys, monkeypatch, project):
    monkeypatch.chdir(project)
    write("provider = 'local'\n[providers.local]\nbase_url = 'http://127.0.0.1:1/v1'\n")
    assert main(["agent", "--show-config", "--model", "big"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["model", '"big"', "the", "command", "line"] in rows
    assert ["provider", '"local"', str(config_folder() / "agent.toml")] in rows
    assert main(["agent", "--provider", "locla"]) == 2
    assert "there is no [providers.locla]; did you mean local?" in capsys.readouterr().err


async def test_a_session_has_the_models_prices_and_rules_of_the_files(script, model, questions, trusted, monkeypatch):
    monkeypatch.setenv("LOCAL_KEY", "sk-LOCAL")
    write(
        f"""
provider = "local"
[providers.local]
api = "openai"
base_url = "{model.url}/v1"
key_variable = "LOCAL_KEY"
model = "small"
[models.large]
context = 1000
price = [3.0, 15.0]
[[rules]]
answer = "allow"
commands = ["printenv *"]
"""
    )
    (trusted / ".accord" / "agent.toml").write_text('[[rules]]\nanswer = "reject"\npaths = ["hello.txt"]\n')
    files = CoderSettings([Layer("flags", CoderFile()), user_layer()])
    agent = coding_agent(files.model_settings, version="0", store=None, files=files)
    script.say(
        call("run_command", command="printenv LOCAL_KEY"),
        call("run_command", command="true"),
        call("edit_file", path="hello.txt", old="world", new="moon"),
        "Done.",
    )
    async with accord.connect(agent, accord.Client(permissions=questions), unstable=True) as remote:
        session = await remote.new_session(trusted)
        assert {"small", "large", "fake"} <= {it.model_id for it in session.state.models}
        await session.set_model("large")
        await session.prompt("Go")
        usage = session.state.usage
    assert questions.titles == ["true"], "a rule allows one command and rejects the edit"
    assert (trusted / "hello.txt").read_text() == "hello\nworld\n"
    assert (usage.size, usage.cost.amount) == (1000, pytest.approx(4 * (10 * 3 + 5 * 15) / 1e6))
    assert "sk-LOCAL" not in text_of(model.bodies[-1])
    assert model.asked[-1][0] == "large"
