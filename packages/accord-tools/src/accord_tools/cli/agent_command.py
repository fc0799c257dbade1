"""`accord agent`: a coding agent with a real model, over standard input and output; and its login."""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from accord import __version__
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_error, print_line, print_table

if TYPE_CHECKING:
    from accord_tools.coder.coder_settings import CoderSettings

HELP = """\
It needs the extra 'agent', and the key of a provider or a server of your own:

  export ANTHROPIC_API_KEY=...         or OPENAI_API_KEY, or 'accord agent login'
  accord run "Hi" -- accord agent      one prompt
  accord agent --api openai --base-url http://localhost:11434/v1 --model qwen3

In an editor's settings, the agent's command is 'accord' and its argument 'agent'.

Each option has its key in agent.toml in your folder of settings, ~/.config/accord, and so have models, MCP servers and
rules; a repository that you trust may have .accord/agent.toml. --show-config prints the source of each setting:

  provider = "local"
  model = "qwen3"

  [providers.local]
  api = "openai"
  base_url = "http://localhost:11434/v1"
  key_variable = "LOCAL_KEY"

  [models.qwen3]
  context = 32000
  price = [0.5, 1.5]

  [mcp.notes]
  command = "notes-mcp"

  [[rules]]
  answer = "allow"
  commands = ["make test"]
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HELP
    parser.add_argument("action", nargs="?", choices=["login", "logout"], help="store an API key, or forget it")
    option(
        parser,
        "--api",
        "the API of the models: Anthropic's messages, OpenAI's chat completions or responses "
        "(default: the first with a key)",
        choices=["anthropic", "openai", "responses"],
    )
    option(parser, "--model NAME", "the model to begin with (default: $ACCORD_MODEL)")
    option(parser, "--base-url URL", "the base URL of the API, if it is not the provider's own")
    option(parser, "--effort", "how long the model thinks", choices=["low", "medium", "high"])
    option(parser, "--mode", "which actions need a question (default: ask)", choices=["ask", "edit", "auto", "plan"])
    option(parser, "--context TOKENS", "the size of the model's context in tokens", type=int)
    option(parser, "--price IN/OUT", "dollars for a million tokens, read and written", type=price)
    option(parser, "--store FILE", "keep the sessions in this file, or in the database of a URL")
    option(parser, "--unstable", "also use proposed parts of the protocol", default=None)
    option(parser, "--provider NAME", "where the models are reached: [providers.NAME] of the file")
    option(parser, "--key-variable NAME", "the environment variable with the key")
    option(parser, "--show-config", "print all settings with their sources, and exit")


def price(text: str) -> tuple[float, float]:
    """Parse two prices, such as `3/15`."""
    read, _, written = text.partition("/")
    try:
        return float(read), float(written)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a pair of prices such as 3/15") from None


def run(options: argparse.Namespace) -> int | None:
    from accord import SqliteStore
    from accord_tools.coder.coder_settings import CoderFile, CoderSettings, Layer, user_layer
    from accord_tools.coder.open_model import api_of

    flags = {name: it for name, it in vars(options).items() if name in CoderFile.__struct_fields__ and it is not None}
    files = CoderSettings([Layer("the command line", CoderFile(**flags)), user_layer()])
    if options.show_config:
        _show(files.with_project(Path.cwd()))
        return None
    settings = files.model_settings
    if options.action is not None:
        return _login(api_of(settings), forget=options.action == "logout")
    from accord_tools.coder.coding_agent import coding_agent

    store = files.value("store")[0] or SqliteStore(name="agent")
    mode, unstable = files.value("mode")[0] or "ask", bool(files.value("unstable")[0])
    coding_agent(settings, version=__version__, store=store, mode=mode, unstable=unstable, files=files).run()
    return None


def _show(files: CoderSettings) -> None:
    rows = list(files.shown())
    if not rows:
        from accord.paths import config_folder

        print_line(f"Nothing is set. Settings can be written to {config_folder() / 'agent.toml'}.")
        return
    print_table(("KEY", "VALUE", "FROM"), rows)


def _login(api: str, *, forget: bool) -> int:
    from accord_tools.coder.api_keys import forget_key, store_key

    if forget:
        forget_key(api)
        print_line(f"The key for {api} is forgotten.")
        return 0
    key = getpass.getpass(f"API key for {api} (it is not shown): ") if sys.stdin.isatty() else sys.stdin.readline()
    if not key.strip():
        print_error("no key was entered; nothing was stored")
        return 1
    print_line(f"The key is stored in {store_key(api, key.strip())}.")
    return 0
