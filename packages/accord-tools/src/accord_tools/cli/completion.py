"""`accord completion`: prints the script that lets a shell complete commands, options, values and agents' names.

The scripts call `accord __complete`, which walks the parser with the words so far. So they never have to be made again
when a command changes. An answer has a line for each word, `WORD<TAB>DESCRIPTION`, or one line that lets the shell
complete by its own means: `:files`, `:folders` or `:command`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from accord import AccordError
from accord.printable import label
from accord_tools.cli.agent_options import split_agent
from accord_tools.cli.command_table import actions_of, commands_for, commands_of, parser_for
from accord_tools.cli.console import write_out

EPILOG = """\
bash: add to ~/.bashrc            eval "$(accord completion bash)"
zsh:  add to ~/.zshrc             eval "$(accord completion zsh)"      (after compinit)
fish: run once                    accord completion fish > ~/.config/fish/completions/accord.fish"""

FILES, FOLDERS, COMMAND = ":files", ":folders", ":command"
_FILES = {"FILE", "PROMPT"}
_AGENTS = {"AGENT", "NAME"}

BASH = """\
_accord() {
    local IFS=$'\\n' answer word
    COMPREPLY=()
    answer=$(accord __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return
    case "$answer" in
        :files) COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")); compopt -o filenames 2>/dev/null ;;
        :folders) COMPREPLY=($(compgen -d -- "${COMP_WORDS[COMP_CWORD]}")); compopt -o filenames 2>/dev/null ;;
        :command) COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")) ;;
        *) for word in $answer; do COMPREPLY+=("${word%%$'\\t'*}"); done ;;
    esac
}
complete -F _accord accord
"""

ZSH = """\
#compdef accord
_accord() {
    local answer line
    local -a found
    answer=$(accord __complete "${(@)words[2,CURRENT]}" 2>/dev/null) || return 1
    case "$answer" in
        :files) _files ;;
        :folders) _files -/ ;;
        :command) _command_names -e ;;
        *) for line in "${(@f)answer}"; do
               [[ -n $line ]] && found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
           done
           _describe accord found ;;
    esac
}
if [[ $funcstack[1] == _accord ]]; then _accord "$@"; else compdef _accord accord; fi
"""

FISH = """\
function __accord_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l answer (accord __complete $words[2..-1] 2>/dev/null)
    switch "$answer[1]"
        case ':files'
            __fish_complete_path (commandline -ct)
        case ':folders'
            __fish_complete_directories (commandline -ct)
        case ':command'
            complete -C (commandline -ct)
        case '*'
            printf '%s\\n' $answer
    end
end
complete -c accord -f -a '(__accord_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("shell", choices=list(SCRIPTS), metavar="SHELL", help="bash, zsh or fish")


def run(options: argparse.Namespace) -> None:
    write_out(SCRIPTS[options.shell])


def answer(words: Sequence[str]) -> None:
    """Print the possible completions of the last of these words."""
    *before, started = words or [""]
    try:
        lines = list(_candidates(parser_for(split_agent(before)[0]), before, started))
    except AccordError:  # of a plug-in that is broken; an error would be printed into the line that the user types
        return
    ours = [line for line in lines if line.startswith((started, ":"))]
    if ours:
        write_out("\n".join(ours) + "\n")


def _candidates(parser: argparse.ArgumentParser, before: Sequence[str], started: str) -> Iterator[str]:
    """Return the possible words, each with its description, or the one line that lets the shell complete."""
    if "--" in before:
        yield COMMAND if before[-1] == "--" else FILES
        return
    waits_for: argparse.Action | None = None
    passed = 0
    for word in before:
        if waits_for is not None:
            waits_for = None
        elif word.startswith("-") and word != "-":
            option = next((it for it in actions_of(parser) if word in it.option_strings), None)
            waits_for = option if option is not None and option.nargs != 0 else None
        elif word in (known := commands_of(parser)):
            parser, passed = known[word], 0
        else:
            passed += 1
    if waits_for is not None:
        yield from _values(waits_for)
    elif started.startswith("-"):
        yield from _options(parser, before)
    else:
        yield from _arguments(parser, passed)


def _options(parser: argparse.ArgumentParser, before: Sequence[str]) -> Iterator[str]:
    for action in actions_of(parser):
        is_again = isinstance(action.default, list) or not any(it in before for it in action.option_strings)
        if action.option_strings and is_again and action.help != argparse.SUPPRESS:
            yield _line(max(action.option_strings, key=len), action.help)


def _arguments(parser: argparse.ArgumentParser, passed: int) -> Iterator[str]:
    if commands := commands_of(parser):
        for name, command in commands.items():
            yield _line(name, command.description)
        return
    given = [action for action in actions_of(parser) if not action.option_strings]
    more = [action for action in given if action.nargs in ("*", "+")]
    action = given[passed] if passed < len(given) else more[-1] if more else None
    if action is not None:
        yield from _values(action)


def _values(action: argparse.Action) -> Iterator[str]:
    """Return the possible values of an option or argument, by its choices or by its name in help."""
    name = action.metavar if isinstance(action.metavar, str) else ""
    if action.choices is not None:
        yield from (_line(str(choice), None) for choice in action.choices)
    elif action.dest == "words":  # of `accord help`
        yield from (_line(name, command.summary) for name, command in commands_for().items())
    elif name in _AGENTS:
        yield from _agents()
    elif name == "DIR":
        yield FOLDERS
    elif name in _FILES:
        yield FILES


def _agents() -> Iterator[str]:
    from accord_tools.configuration.resolve_agent import KnownAgents
    from accord_tools.registry.installed_agents import all_installed

    try:
        known = list(KnownAgents.of())
    except AccordError:
        known = []
    for agent in known:
        if not agent.is_hidden:
            yield _line(agent.name, agent.settings.description or agent.settings.where)
    for installed in all_installed():
        yield _line(installed.id, f"{installed.name} {installed.version}")


def _line(word: str, description: str | None) -> str:
    about = (description or "").replace("%(default)s", "").replace("%%", "%")
    return f"{word}\t{label(about, 80)}"
