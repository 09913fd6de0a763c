"""Writes the reference pages that are made from the code, each time the site is built.

``python docs/generate.py`` writes them into ``docs/reference/``; git ignores them.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent / "reference"


def table(heads: tuple[str, ...], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table without the columns that are empty; a meaning must not be."""
    cells = [[_cell(value) for value in row] for row in rows]
    kept = [n for n, head in enumerate(heads) if head == "meaning" or any(row[n] for row in cells)]
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join("| " + " | ".join(line[n] for n in kept) + " |" for line in lines) + "\n"


def _cell(value: object) -> str:
    text = re.sub(r"\s+", " ", str(value)).replace("|", "\\|").strip()
    # What is in backticks is shown as it is; elsewhere < would begin a tag.
    return re.sub(r"(`[^`]*`)|<", lambda found: found[1] or "&lt;", text)


def code(value: object) -> str:
    """Return a value as Markdown's code; nothing for nothing."""
    return f"`{value}`" if value not in (None, "") else ""


def prose(text: str) -> str:
    """Return a docstring as Markdown."""
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def meanings(kind: type) -> dict[str, str]:
    """Return the docstring under each field of a struct, inherited ones first."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if not (isinstance(each, type) and issubclass(each, msgspec.Struct)):
            continue
        if each.__module__.startswith("msgspec"):
            continue
        try:
            source = inspect.getsource(each)
        except (OSError, TypeError):
            # Made by a function, out of others.
            continue
        body = ast.parse(textwrap.dedent(source)).body[0]
        name = ""
        for node in body.body if isinstance(body, ast.ClassDef) else ():
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and name:
                found[name], name = inspect.cleandoc(str(node.value.value)), ""
            else:
                name = ""
    return found


def summary(kind: type) -> str:
    """Return the first sentence of a docstring."""
    return prose((kind.__doc__ or "").split("\n\n")[0].replace("\n", " "))


# --- commands -------------------------------------------------------------------------------------


def commands() -> str:
    """Return the page of commands and their options."""
    from ccplay.cli import manual

    lines = [
        "# Commands and options",
        "`ccplay` alone opens the playground; `ccplay FILE.toml` opens a scenario on the screen. "
        "`ccplay COMMAND --help` prints what this page says.",
    ]
    group = None
    for each in manual.commands():
        if each.group != group:
            group = each.group
            lines.append(f"## {group or 'Older names, and the lab'}")
            if not group:
                lines.append(
                    "These commands of 0.1 are now part of others, and still work. `ccplay lab` "
                    "is what a session starts."
                )
        lines += _command(each, 3)
    return "\n\n".join(lines) + "\n"


def _command(each: Any, level: int) -> Iterator[str]:
    yield f"{'#' * level} ccplay {each.name}"
    yield prose(each.summary[0].upper() + each.summary[1:] + ".")
    yield f"```text\n{each.usage}\n```"
    rows = [
        (code(option.spelling), option.text or ", ".join(map(code, option.choices)))
        for option in each.options
    ]
    if rows:
        yield table(("option", "meaning"), rows)
    if each.about:
        yield f"```text\n{each.about.strip()}\n```"
    for action in each.actions:
        yield from _command(action._replace(name=f"{each.name} {action.name}"), level + 1)


def exit_codes() -> str:
    """Return the page of exit codes."""
    from ccplay.cli.manual import EXITS

    rows = ((code(number), text) for number, text in EXITS.items())
    return f"""# Exit codes

{table(("code", "meaning"), rows)}
A screen exits with the code of what ended its session. What `ccplay run` has measured until then is
printed in any case.
"""


# --- the screen -----------------------------------------------------------------------------------


def keys() -> str:
    """Return the page of keys."""
    from ccplay.ui import keys as bound

    groups: dict[str, list[tuple[str, str, str]]] = {}
    for name, binding in bound.REMAPPABLE.items():
        shown = " ".join(code(bound.shown(each)) for each in binding.key.split(","))
        text = binding.tooltip or binding.description
        groups.setdefault(bound.group_of(binding.action), []).append((shown, text, code(name)))
    lines = [
        "# Keys",
        "`?` shows these on the screen. Each can be remapped by its name in "
        "[your preferences](preferences.md).",
    ]
    for group, rows in groups.items():
        lines += [f"## {group.capitalize()}", table(("key", "what it does", "name"), rows)]
    return "\n\n".join(lines) + "\n"


def preferences() -> str:
    """Return the page of preferences."""
    from ccplay.ui.preferences import Preferences, written

    about = {
        "theme": "name of a theme; `t` goes through them",
        "glyphs": "`unicode`, or `ascii` for terminals without box-drawing characters",
        "stroke": "thickness of lines; by default the theme decides",
        "plots": "plots from left to right; by default the width decides",
        "large": 'a plot that fills the screen from the start, or `"none"`',
        "keys": "keys that differ from the defaults, by [name](keys.md)",
    }
    rows = [(code(name), about[name]) for name in Preferences.__struct_fields__ if name in about]
    return f"""# Preferences

ccplay keeps what you choose by keys in `~/.config/ccplay/config.toml` (`$XDG_CONFIG_HOME`), and
the event log says so once. With sudo this is your file, not root's. `ccplay config` prints the
file's place and all values in force. Options of the command line take precedence.

{table(("key", "meaning"), rows)}
The defaults:

```toml
{written(Preferences()).strip()}
```

A key of your own:

```toml
[keys]
stop = "X"
help = "f1,?"
```
"""


def plots() -> str:
    """Return the page of plots."""
    from ccplay.plots.table import PLOTS

    rows = [
        (code(each.name), each.full or each.title, each.help, "yes" if each.reported else "")
        for each in PLOTS.values()
    ]
    return f"""# Plots

On the screen `ctrl+p`, `plot: NAME` adds a plot or removes it. A report draws those marked here,
and others with `ccplay report RUN --plot NAME`.

{table(("name", "title", "what it shows", "in every report"), rows)}"""


_OWNERS = {"udp": "UDP cross traffic", "short-flows": "short flows", "call": "a video call"}
"""What has variables, where its name is not its word."""


def variables() -> str:
    """Return the page of variables."""
    from ccplay.traffic import VARIABLES

    lines = [
        "# Variables",
        "Quantities that are measured over time, by what has them. A lesson's `metric` with `take` "
        "names one of these; `ccplay export` writes them all. Variables of algorithms and "
        "disciplines (`v`) come on top: their names begin with the algorithm's.",
    ]
    for subject, known in VARIABLES.items():
        rows = [(code(n), each.words, each.unit, each.combined) for n, each in known.items()]
        lines.append(f"## Of {_OWNERS.get(subject, f'a {subject}')}")
        lines.append(table(("name", "meaning", "unit", "several are combined by"), rows))
    return "\n\n".join(lines) + "\n"


# --- what a lab can have --------------------------------------------------------------------------


def topologies() -> str:
    """Return the page of topologies."""
    from ccplay.model.topologies import TOPOLOGIES

    lines = [
        "# Topologies",
        "`ccplay --topology KIND[,NAME=N]` opens one with some flows over it; a scenario names it "
        "in `topology`.",
    ]
    for kind in TOPOLOGIES.values():
        lines += [f"## {kind.name}", f"```text\n{kind.summary}\n```"]
        if kind.parameters:
            lines.append(_settings_of(kind.parameters, "settings.md"))
    return "\n\n".join(lines) + "\n"


def algorithms() -> str:
    """Return the page of congestion controls."""
    from ccplay.assets import algorithms as found

    lines = [
        "# Congestion controls",
        "Those of the kernel have their usual names; `ccplay doctor` lists what yours has. ccplay "
        "brings these as short BPF programs. Each cites its paper in its head. `vegas` is the "
        "kernel's where it has one, and ccplay's otherwise; `vegas.bpf` is always ccplay's. They "
        "need root, Linux 6.4, clang and bpftool.",
    ]
    for name, path in found().items():
        head = re.search(r"/\*(.*?)\*/", path.read_text(encoding="utf-8"), re.DOTALL)
        text = re.sub(r"(?m)^ \* ?", "", head[1] if head else "")
        text = re.sub(r"\s*SPDX-License-Identifier: \S+\s*", "", text, count=1).strip()
        first, _, rest = text.partition("\n\n")
        lines += [f"## {name}", prose(re.sub(r"\s+", " ", first)), f"```text\n{rest}\n```"]
    return "\n\n".join(lines) + "\n"


def disciplines() -> str:
    """Return the page of queue disciplines."""
    import ccplay.lab.disciplines
    from ccplay.model.disciplines import DISCIPLINES

    folder = Path(ccplay.lab.disciplines.__file__ or "").parent
    lines = [
        "# Queue disciplines",
        "A queue in a scenario is a `kind` and its parameters, which are those of `tc-KIND(8)`. A "
        "kind is the kernel's where it has one, and otherwise ccplay's own, up to 100 Mbit/s. "
        "`codel.py` is always ccplay's.",
    ]
    for kind, each in DISCIPLINES.items():
        own = folder / f"{kind}.py"
        makers = ["the kernel"] * each.in_kernel + ["ccplay"] * own.exists()
        where = f"Available from {' and from '.join(makers)}"
        lines += [f"## {kind}", f"{each.summary[0].upper()}{each.summary[1:]}. {where}."]
        if own.exists():
            doc = ast.get_docstring(ast.parse(own.read_text(encoding="utf-8"))) or ""
            lines.append(f"*Source: {prose(doc.split(chr(10) * 2)[0]).replace(chr(10), ' ')}*")
        if each.parameters:
            lines.append(_settings_of(each.parameters, "settings.md"))
    return "\n\n".join(lines) + "\n"


def _settings_of(fields: Iterable[Any], page: str = "") -> str:
    """Return a table of settings with their defaults and bounds; definitions are on ``page``."""
    rows = []
    for field in fields:
        default = "" if field.default is None else field.show(field.default)
        bounded = field.low is not None and field.high is not None
        values = field.bounds if bounded else _bounds(field.shape, page)
        needed = " (required)" if field.required else ""
        rows.append((code(field.key or field.name) + needed, field.meaning, default, values))
    return table(("key", "meaning", "default", "values"), rows)


# --- scenario files -------------------------------------------------------------------------------


def settings() -> str:
    """Return the page of all keys of a scenario, from its schema."""
    from ccplay.scenario.schema import schema

    whole = schema()
    lines = [
        "# Settings of a scenario file",
        "Made from the JSON Schema, which `ccplay config schema` prints. "
        "[Scenario files](scenarios.md) explains how the settings work together.",
        "## The file",
        _properties(whole),
    ]
    kinds = ["## Kinds of values"]
    for name, shape in whole["$defs"].items():
        inner = list(_inner(shape))
        if not inner and name not in _ELSEWHERE:
            joint = ": " if "enum" in shape else ", " if "examples" in shape else ""
            kinds += [f"### {name}", f"{_KINDS[name]}{joint}{joint and _bounds(shape)}."]
            continue
        lines.append(f"## {name}")
        if name in _ELSEWHERE:
            lines.append(_ELSEWHERE[name]())
            continue
        if about := shape.get("description"):
            lines.append(f"{about}.")
        for each in inner:
            title = _constants(each)
            if title:
                lines.append(f"### {title}")
            if each is not shape and each.get("description"):
                lines.append(str(each["description"]))
            lines.append(_properties(each))
    return "\n\n".join([*lines, *kinds]) + "\n"


_KINDS = {
    "line": "One line of text",
    "prose": "Text of any length",
    "number": "A plain number, in the unit of the metric",
    "flag": "`true` or `false`",
    "name": "Up to 16 letters, digits and `_ . -`",
    "metric": "The path of a metric in the [result](metrics.md)",
    "algorithm": "A [congestion control](algorithms.md)",
    "rate": "A rate",
    "link-rate": 'A rate, or `"unlimited"`',
    "time": "A length of time",
    "size": "A number of bytes",
    "queue-size": "A number of bytes",
    "share": "A share in percent",
    "gemodel": "Up to four shares: loss in bursts",
    "frequency": "How often in a second",
    "whole": "A whole number",
    "count": 'A number of packets, plain or as `"100 packets"`',
    "switch": "`true` or `false`",
    "tolerance": "A share in percent, or a plain number",
}
"""Kinds of values, each with what it is."""


def _steps() -> str:
    """Return the actions of a timeline, each with its settings."""
    from ccplay.model.quantities import fields_of
    from ccplay.scenario.timeline import ACTIONS

    lines = ["Every step has `do`, and a moment: `at`, or `after` the traffic of a name has ended."]
    for name, kind in ACTIONS.items():
        fields = [each for each in fields_of(kind).values() if each.key]
        lines += [f"### {name}", summary(kind), _settings_of(fields)]
    return "\n\n".join(lines)


_ELSEWHERE: dict[str, Callable[[], str]] = {
    "step": _steps,
    "queue": lambda: "A `kind` and its parameters: see [queue disciplines](disciplines.md).",
    "changed-queue": lambda: "Any of the parameters of a [queue discipline](disciplines.md).",
}
"""Definitions that other tables describe better than the schema, with what is said of each."""


def _inner(shape: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the tables that a definition consists of."""
    if "properties" in shape:
        yield shape
    items = [shape["items"]] if "items" in shape else []
    for each in (*items, *shape.get("oneOf", ()), *shape.get("anyOf", ()), *shape.get("allOf", ())):
        yield from _inner(each)


def _constants(shape: Mapping[str, Any]) -> str:
    named = (each.get("const") for each in shape.get("properties", {}).values())
    return ", ".join(code(each) for each in named if each is not None)


def _properties(shape: Mapping[str, Any]) -> str:
    required = shape.get("required", ())
    rows = [
        (code(name) + (" (required)" if name in required else ""), each.get("description", ""),
         code(each.get("default")), _bounds(each))
        for name, each in shape["properties"].items()
        if not each.get("deprecated") and "const" not in each
    ]  # fmt: skip
    return table(("key", "meaning", "default", "values"), rows) if rows else ""


def _bounds(shape: Mapping[str, Any], page: str = "") -> str:
    """Return the values that a shape permits, in words; definitions are on ``page``."""
    if "$ref" in shape:
        name = shape["$ref"].rpartition("/")[2]
        return f"[{name}]({page}#{name})"
    if "enum" in shape:
        return ", ".join(code(each) for each in shape["enum"])
    words = []
    if "minimum" in shape or "maximum" in shape:
        words.append(f"{shape.get('minimum', '')} to {shape.get('maximum', '')}".strip())
    if "items" in shape:
        item = _bounds(shape["items"], page)
        words.append("list of tables" if item in ("", "table") else f"list of {item}")
    for key in ("anyOf", "oneOf"):
        words += [found for each in shape.get(key, ()) if (found := _bounds(each, page))]
    if examples := shape.get("examples"):
        words.append("such as " + ", ".join(code(each) for each in examples))
    if not words and isinstance(shape.get("type"), str):
        words.append("table" if shape["type"] == "object" else str(shape["type"]))
    return "; ".join(dict.fromkeys(words))


# --- results and recordings -----------------------------------------------------------------------


def metrics() -> str:
    """Return the page of metrics: the fields of a run's result."""
    from ccplay.analysis import results

    lines = [
        "# Metrics",
        "A metric is named by its path in the result of a run: `flows.1.goodput_bps`, "
        "`queues.bottleneck.qlen_p50`, `jain`. `metrics`, `expect`, `published` and `--metric` "
        "take such names. Members of lists go by their `id` or `link`; `queues.bottleneck` is the "
        "first observed queue. Each name ends in its unit.",
        "## Of the whole run",
        _fields(results.CaseResult),
    ]
    hints = typing.get_type_hints(results.CaseResult)
    for name, hint in hints.items():
        for member in typing.get_args(hint):
            if isinstance(member, type) and issubclass(member, msgspec.Struct):
                lines += [f"## {name}", summary(member), _fields(member)]
    return "\n\n".join(line for line in lines if line) + "\n"


def _fields(kind: type[msgspec.Struct]) -> str:
    about = meanings(kind)
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    if "checks" in kind.__struct_fields__:
        about = _LISTS | about
    rows = [(code(key), prose(about.get(name) or _usual(name, about))) for name, key in names]
    return table(("key", "meaning"), rows)


_SIZES = {
    "small_": "of transfers below 100 kB",
    "medium_": "of transfers from 100 kB to below 1 MB",
    "large_": "of transfers from 1 MB",
}
_STATISTICS = {"p50": "median", "mean": "mean", "min": "smallest value", "max": "greatest value"}
_STATISTIC = re.compile(r"(?:(.+)_)?(p50|p95|p99|mean|min|max)(?:_(ms|us))?")


_LISTS = {
    "flows": "Results of the flows.",
    "pings": "Results of the pings.",
    "downloads": "Results of the downloads.",
    "udp": "Results of UDP cross traffic.",
    "short_flows": "Results of short flows.",
    "calls": "Results of the video calls.",
    "queues": "Results of the observed queues.",
}
"""Meanings of the lists in a run's result."""


def _usual(name: str, about: Mapping[str, str]) -> str:
    """Return the meaning of a field whose struct gives none, as many have the same names."""
    for size, words in _SIZES.items():
        if name.startswith(size):
            rest = name.removeprefix(size)
            return f"{(about.get(rest) or _usual(rest, about)).rstrip('.')}; {words}."
    if name in _USUAL:
        return f"{_USUAL[name]}."
    if found := _STATISTIC.fullmatch(name):
        stem, statistic, unit = found.groups()
        words = _STATISTICS.get(statistic, f"{statistic[1:]}th percentile").capitalize()
        of = f" of `{stem}`" if stem else " of the RTT"
        return words + of + (f", in {unit.replace('us', 'µs')}" if unit else "") + "."
    return ""


_USUAL = {
    "t": "Seconds since the stream began",
    "src": "Name of the host that sends",
    "dst": "Name of the host that receives",
    "flow": "Name of the flow",
    "subflow": "Name of the subflow",
    "download": "Name of the download",
    "ping": "Name of the ping",
    "udp": "Name of the cross traffic",
    "short_flows": "Name of the short flows",
    "call": "Name of the call",
    "capture": "Name of the capture",
    "cc": "Congestion control",
    "host": "Name of the host",
    "node": "Name of the host or router",
    "link": "Name of the directed link",
    "interface": "Names of the interfaces",
    "duration_s": "Duration in seconds",
    "interval_s": "Seconds between two requests",
    "rate_bps": "Rate of payload in bits per second",
    "packet_bytes": "Payload of each packet in bytes",
    "bytes": "Payload in bytes",
    "packets": "Number of packets",
    "sent": "Number of requests sent",
    "lost": "Number of requests without a reply",
    "seq": "Number of the request",
    "rtt_us": "RTT in µs; null without a reply",
    "monitored": "Counts of the packets",
    "received": "Packets received",
    "sent_bytes": "Bytes sent",
    "received_bytes": "Bytes received, Ethernet headers included",
    "sample_hz": "Samples a second",
    "capabilities": "What this kernel and this machine support",
    "network": "Nodes, links and roles",
    "step": "Step that is under way",
    "done": "Number of steps done",
    "total": "Number of all steps",
    "setting": "Settings as read back from the kernel",
    "path": "Path of the file",
    "cwnd": "cwnd in segments",
    "ssthresh": "ssthresh in segments",
    "srtt_us": "Smoothed RTT in µs",
    "tcp": "Samples of connections",
    "qdisc": "Samples of queues",
    "own": "Values of the algorithms' own variables",
    "queue_own": "Values of the disciplines' own variables",
    "command": "The command, with all names filled in",
    "message": "Reason and remedy",
    "level": "`info`, `warning` or `error`",
    "text": "The message",
    "reason": "Why the lab ended",
    "format": "Version of the format",
    "title": "Title of the scenario",
    "kernel": "Release of the kernel",
    "cpus": "Number of cores",
    "python": "Version of Python",
    "ccplay": "Version of ccplay",
    "privilege": "Privilege that the lab ran with",
    "name": "Name of the case",
    "parameters": "Point of the matrix, by axis",
    "repeat": "Number of the repeat",
    "interrupted": "Whether the run was interrupted",
    "checks": "The expectations, each with whether it held",
    "health": "Health of the lab",
    "published": "Values measured by others",
    "metric": "Path of the metric",
    "why": "Reason for the expectation",
    "ok": "Whether it held",
    "switches": "Later changes of the algorithm",
    "streams": "Number of parallel connections",
    "kinds": "All disciplines that were used",
    "finished": "Number of transfers that finished",
}
"""Meanings of names that say the same in every struct and have no docstring there."""


def result() -> str:
    """Return the page of the JSON result."""
    from ccplay.analysis import results
    from ccplay.scenario.values import Published

    lines = [
        "# JSON result",
        "`ccplay run --json` prints one object; `--out DIR` keeps the same in `DIR/result.json`. "
        "Keys may be added; none is removed or changes its meaning while `format` is 1. Unknown "
        "values are `null`. `ccplay run` prints with [these exit codes](exit-codes.md).",
    ]
    kinds = [results.Result, results.Machine, results.CaseResult, results.Checkpoint]
    kinds += [results.Check, results.CaseStatistics, Published]
    for kind in kinds:
        lines += [f"## {kind.__name__}", summary(kind), _fields(kind)]
    lines.append(
        "The members of the lists in a run's result are described under [metrics](metrics.md)."
    )
    return "\n\n".join(lines) + "\n"


def events() -> str:
    """Return the page of events of a recording."""
    from ccplay.stream.wire import EVENTS

    lines = [
        "# Events of a recording",
        "A recording (`--record FILE`) is a header line, and then one JSON object a line. `kind` "
        "names the event, `t` is the time in seconds since the stream began. Readers skip kinds "
        "that they do not know.",
    ]
    for each in EVENTS:
        # Events that hold commands are generic.
        kind = typing.get_origin(each) or each
        tag = kind.__struct_config__.tag
        lines += [f"## {tag}", summary(kind), _fields(kind)]
    return "\n\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "keys": keys,
    "settings": settings,
    "metrics": metrics,
    "plots": plots,
    "variables": variables,
    "topologies": topologies,
    "algorithms": algorithms,
    "disciplines": disciplines,
    "events": events,
    "result": result,
    "exit-codes": exit_codes,
    "preferences": preferences,
}
"""Pages made from the code, each with the function that writes it."""


def write() -> None:
    """Write all pages, and leave those that have not changed as they are."""
    for name, page in PAGES.items():
        path, text = HERE / f"{name}.md", page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
