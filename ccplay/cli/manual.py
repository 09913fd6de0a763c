"""What the parser knows, for other readers: the man page, completions, and the reference.

``python -m ccplay.cli.manual FOLDER`` writes the files that the wheel installs; a test compares
them with the parser.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple

from ccplay import cli

SHELLS = ("bash", "zsh", "fish")

FILES = {
    "ccplay.1": "share/man/man1",
    "ccplay.bash": "share/bash-completion/completions",
    "_ccplay": "share/zsh/site-functions",
    "ccplay.fish": "share/fish/vendor_completions.d",
}
"""Files that the wheel installs, each with its folder below the prefix."""


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """\
For this shell alone, or in its start-up file for all:

  bash    eval "$(ccplay completion bash)"
  zsh     eval "$(ccplay completion zsh)"      after compinit
  fish    ccplay completion fish | source
"""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=run_completion)


def run_completion(arguments: argparse.Namespace) -> int:
    """Print the completion for a shell, and return the exit code."""
    sys.stdout.write(completion(arguments.shell))
    return 0


# --- what the parser knows ------------------------------------------------------------------------


class Option(NamedTuple):
    """An option or an argument of a command."""

    names: tuple[str, ...]
    """Spellings, the usual one last; empty for an argument that has none."""
    value: str
    """Name of its value in the help; empty for a switch."""
    text: str
    choices: tuple[str, ...]

    @property
    def spelling(self) -> str:
        """How it is written, such as ``--jobs N``."""
        return " ".join(filter(None, (", ".join(self.names), self.value)))


class Subcommand(NamedTuple):
    """A command, as its parser describes it."""

    name: str
    group: str
    """Heading under which the help lists it; empty for older names and the lab."""
    summary: str
    usage: str
    options: list[Option]
    about: str
    """Text after the options, laid out for a terminal; empty if there is none."""
    actions: list[Subcommand]
    """Commands of a command: ``new`` of ``ccplay algorithm``."""


def commands() -> list[Subcommand]:
    """Return all commands, those in the help first, with everything that their parsers know."""
    groups = {name: group for group, names in cli.GROUPS.items() for name in names}
    groups |= dict.fromkeys(cli.MORE, "Set up")
    found = []
    for name, summary in cli.COMMANDS.items():
        parser = argparse.ArgumentParser(prog=f"ccplay {name}")
        cli.add_arguments(name, parser)
        found.append(_described(name, groups.get(name, ""), summary, parser))
    return found


def _described(name: str, group: str, summary: str, parser: argparse.ArgumentParser) -> Subcommand:
    options, actions = [], []
    formatter = argparse.HelpFormatter(parser.prog, width=200)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {each.dest: each.help or "" for each in action._choices_actions}
            actions = [_described(n, "", texts.get(n, ""), p) for n, p in action.choices.items()]
            continue
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
            continue
        text = formatter._expand_help(action) if action.help else ""
        # `--out DIR`, without the name: a switch has no value.
        default = action.dest.upper() if action.option_strings else action.dest
        value = "" if action.nargs == 0 else formatter._format_args(action, default)
        choices = tuple(map(str, action.choices or ()))
        options.append(Option(tuple(action.option_strings), value, text, choices))
    usage = (
        re.sub(r"\s+", " ", parser.format_usage().removeprefix("usage: "))
        .replace(" [-h]", "")
        .strip()
    )
    return Subcommand(name, group, summary, usage, options, parser.epilog or "", actions)


# --- man page -------------------------------------------------------------------------------------

EXITS = {
    "0": "done",
    "1": "error; with `ccplay run` also a failed check or traffic that died",
    "2": "wrong command line",
    "3": "scenario refused",
    "4": "recording unreadable",
    "5": "lab can't start, or died",
    "6": "not possible on this kernel",
    "129": "terminal closed",
    "130": "interrupted",
    "143": "ended by SIGTERM",
}
"""Exit codes, and what each means."""

PLACES = {
    "~/.config/ccplay/config.toml": "preferences of the screen",
    "~/.config/ccplay/themes/": "themes of your own",
    "~/.local/state/ccplay/sessions/": "the last sessions of the screen",
    "~/.local/state/ccplay/lessons/": "progress in lessons",
}
"""Files and folders that ccplay keeps, and what each holds."""


def man() -> str:
    """Return the man page ``ccplay(1)``."""
    lines = [
        '.TH CCPLAY 1 "" "ccplay" "User Commands"',
        ".SH NAME",
        r"ccplay \- see TCP congestion control work: a live playground on real Linux stacks",
        ".SH SYNOPSIS",
        ".B ccplay",
        r"[\fICOMMAND\fR] [\fIARGUMENTS\fR]",
        ".SH DESCRIPTION",
        "ccplay runs real TCP connections over a small network on this machine, and draws",
        "congestion window, queue and round-trip time live. Without a command it opens",
        "the playground;",
        r"\fBccplay\fR \fIFILE.toml\fR opens a scenario on the screen.",
        "Results go to stdout, messages to stderr.",
    ]
    group = None
    for command in commands():
        if not command.group:
            continue
        if command.group != group:
            group = command.group
            lines.append(f".SH {group.upper()}")
        lines += _man_of(command)
    lines.append(".SH EXIT STATUS")
    lines += _man_list(EXITS)
    lines.append(".SH FILES")
    lines += _man_list(PLACES)
    lines += [".SH SEE ALSO", r"tc(8), netem(8), tcp(7), ip\-netns(8), iperf3(1)"]
    return "\n".join(lines) + "\n"


def _man_of(command: Subcommand) -> list[str]:
    lines = [f".SS {_roff(f'ccplay {command.name}')}", _roff(f"{_sentence(command.summary)}.")]
    lines += [".PP", _roff(command.usage)]
    for option in command.options:
        lines += [".TP", rf"\fB{_roff(option.spelling)}\fR", _roff(_sentence(option.text))]
    if command.about:
        lines += [".PP", ".nf", *map(_roff, command.about.strip("\n").splitlines()), ".fi"]
    return lines


def _man_list(items: dict[str, str]) -> list[str]:
    return [
        line for k, text in items.items() for line in (".TP", rf"\fB{_roff(k)}\fR", _roff(text))
    ]


def _roff(text: str) -> str:
    """Return text with what roff(7) reads as its own escaped."""
    text = text.replace("\\", r"\e").replace("…", "...").replace("-", r"\-").replace("'", r"\(aq")
    return rf"\&{text}" if text.startswith((".", r"\(aq")) else text


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# --- completion -----------------------------------------------------------------------------------


def completion(shell: str) -> str:
    """Return the completion for ``bash``, ``zsh`` or ``fish``."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()


def _listed() -> list[Subcommand]:
    return [each for each in commands() if each.group]


def _words(command: Subcommand) -> tuple[list[str], list[str]]:
    """Return the options of a command, and the words that it takes without one."""
    options = [name for each in command.options for name in each.names]
    words = [word for each in command.options if not each.names for word in each.choices]
    return ["--help", *options], [*words, *_names(command.name)]


def _names(command: str) -> list[str]:
    """Return the names of what a command opens: scenarios or lessons that come with ccplay."""
    from ccplay.lesson import library as lessons
    from ccplay.scenario import library as scenarios

    if command in ("play", "run"):
        return list(scenarios.shipped())
    return list(lessons.shipped()) if command == "lesson" else []


def _bash() -> str:
    listed = _listed()
    cases, values = [], []
    for command in listed:
        options, words = _words(command)
        cases.append(
            f'    {command.name}) options="{" ".join(options)}"; words="{" ".join(words)}" ;;'
        )
        for option in (each for each in command.options if each.names and each.value):
            pattern = "|".join(f"{command.name}:{name}" for name in option.names)
            if option.choices:
                line = f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$current"))'
            else:
                line = 'COMPREPLY=($(compgen -f -- "$current"))'
            values.append(f"    {pattern}) {line}; return ;;")
    names = " ".join(each.name for each in listed)
    return f"""\
# Completion of ccplay for bash, made by `ccplay completion bash`.
_ccplay() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local command=${{COMP_WORDS[1]}} options="" words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ] && [[ $current != -* ]]; then
    COMPREPLY=($(compgen -W "{names}" -- "$current") $(compgen -f -X '!*.toml' -- "$current"))
    return
  fi
  case " {names} " in *" $command "*) ;; *) command=play ;; esac
  case $command:$before in
{chr(10).join(values)}
  esac
  case $command in
{chr(10).join(cases)}
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _ccplay ccplay
"""


def _quoted(text: str) -> str:
    """Return text on one line, as a word between single quotes."""
    return "'" + re.sub(r"\s+", " ", text).replace("'", "'\\''") + "'"


def _zsh() -> str:
    listed = _listed()
    described = [_quoted(f"{each.name}:{each.summary}") for each in listed]
    cases = []
    for command in listed:
        specs = [_quoted("(- *)--help[explain this command]")]
        for option in command.options:
            text = re.sub(r"([\[\]:])", r"\\\1", option.text)
            what = f"({' '.join(option.choices)})" if option.choices else "_files"
            value = f":{re.sub(r'[^A-Z]', '', option.value)}:{what}" if option.value else ""
            specs += [_quoted(f"*{name}[{text}]{value}") for name in option.names]
        words = _words(command)[1]
        offered = f'_alternative "words:word:({" ".join(words)})" "files:file:_files"'
        specs.append(_quoted(f"*: :{{ {offered} }}" if words else "*:file:_files"))
        cases.append(f"    {command.name}) _arguments {' '.join(specs)} ;;")
    return f"""\
#compdef ccplay
# Completion of ccplay for zsh, made by `ccplay completion zsh`.
_ccplay() {{
  local -a commands
  commands=({" ".join(described)})
  if (( CURRENT == 2 )); then
    _describe command commands
    _files -g '*.toml'
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
{chr(10).join(cases)}
    *) _files ;;
  esac
}}
if [ "$funcstack[1]" = _ccplay ]; then _ccplay "$@"; else compdef _ccplay ccplay; fi
"""


def _fish() -> str:
    lines = [
        "# Completion of ccplay for fish, made by `ccplay completion fish`.",
        "complete -c ccplay -n __fish_use_subcommand -l help -d 'explain the commands'",
    ]
    for command in _listed():
        text = _quoted(command.summary)
        lines.append(f"complete -c ccplay -n __fish_use_subcommand -a {command.name} -d {text}")
        given = f"complete -c ccplay -n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            takes = f" -xa '{' '.join(option.choices)}'" if option.choices else " -r"
            for name in option.names:
                kind = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                value = takes if option.value else ""
                lines.append(f"{given} {kind}{value} -d {_quoted(option.text)}")
        words = _words(command)[1]
        if words:
            lines.append(f"{given} -a '{' '.join(words)}'")
    return "\n".join(lines) + "\n"


# --- files of the wheel ---------------------------------------------------------------------------


def files() -> dict[str, str]:
    """Return the content of each of ``FILES``."""
    shells = {"ccplay.bash": "bash", "_ccplay": "zsh", "ccplay.fish": "fish"}
    return {"ccplay.1": man(), **{name: completion(shell) for name, shell in shells.items()}}


if __name__ == "__main__":
    for name, text in files().items():
        Path(sys.argv[1], name).write_text(text, encoding="utf-8")
