"""`accord permissions`: lists what agents may do without a question in this folder, and why; and revokes it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from accord import RememberedAnswers
from accord.printable import label
from accord.services import RememberedAnswer
from accord_tools.cli.agent_options import agent_arguments, chosen_agent
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_json, print_line
from accord_tools.cli.exit_codes import WrongUsage
from accord_tools.cli.permission_options import permission_arguments, policy_of
from accord_tools.configuration.permission_rules import (
    DefaultLevel,
    PermissionRule,
    chosen_rules,
    default_level,
    permission_rules,
)
from accord_tools.configuration.trust import distrust

EPILOG = """\
examples:
  accord permissions                       all permissions in this folder
  accord permissions gemini                for this agent, whose settings may name a level
  accord permissions --policy rules.toml   with the rules of this file
  accord permissions --everywhere          also those for other folders
  accord permissions --revoke 3fa21c09     revoke one, by the id in front of it
  accord permissions --revoke all

A level comes from --allow; else the stricter one of the agent's settings and of the folder's entry in your settings
counts:

  [allow]
  "*" = "ask"            the level of any other folder
  "~/notes" = "edit"

Answers for one session only are shown and revoked in the chat, by /permissions."""

TEXT = 200
"""Characters of a command that are shown."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    option(parser, "--cwd FOLDER", "the folder (default: this one)", default=".")
    option(parser, "--everywhere", "also list permissions for other folders")
    option(parser, "--revoke ID|all...", "revoke an answer or a trusted file, or all that are listed")
    option(parser, "--json", "print JSON")
    permission_arguments(parser)
    agent_arguments(parser, is_argument=True)


def run(options: argparse.Namespace) -> None:
    folder = Path(os.path.realpath(options.cwd))
    settings = chosen_agent(options).settings
    level = DefaultLevel(options.allow, "--allow") if options.allow else default_level(folder, settings)
    answers = RememberedAnswers()
    rules = list(permission_rules(level, policy_of(options), answers, None if options.everywhere else folder))
    if options.revoke:
        _revoke(options.revoke, rules, answers)
        return
    if options.json:
        rows = [{"id": it.id, "rule": it.text, "about": it.about, "source": it.source} for it in rules]
        print_json(rows)
        return
    source = ""
    if rules[0].id:
        print_line(f"Kept in {answers.path.parent}; --revoke ID asks again.\n")
    for rule in rules:
        if rule.source != source:
            print_line(("\n" if source else "") + label(rule.source, TEXT))
        source = rule.source
        print_line(f"  {rule.id:8}  {label(rule.text, TEXT)}")
        print_line(f"            {label(rule.about, TEXT)}")


def _revoke(words: list[str], rules: list[PermissionRule], answers: RememberedAnswers) -> None:
    found = chosen_rules(rules, ["" if word == "all" else word for word in words])
    for word, meant in found.items():
        if word and len(meant) != 1:
            known = ", ".join(rule.id for rule in rules if rule.id) or "none"
            raise WrongUsage(f"--revoke {word}: {len(meant)} ids begin like this; there are: {known}")
    for rule in dict.fromkeys(rule for meant in found.values() for rule in meant):
        if isinstance(rule.value, RememberedAnswer):
            answers.forget(rule.value)
        else:
            distrust(rule.value)
        print_line(f"Revoked: {label(rule.text, TEXT)} ({label(rule.about, TEXT)})")
