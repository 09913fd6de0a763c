"""``ccplay trace``: draw a trace, make one from a model, or import one from a measurement."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ccplay.trace.content import Content

_TRACE = """\
examples:
  ccplay trace show lte-driving
  ccplay trace show my.up --delay my.owd
  ccplay trace make "starlink seed 3" > starlink.csv
  ccplay trace import flow.json > measured.csv
"""


def add_trace(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.epilog = _TRACE
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(required=True)
    show = actions.add_parser("show", help="draw capacity and delay over time")
    show.add_argument("what", metavar="FILE|NAME", help="a file, or a trace that comes with ccplay")
    show.add_argument("--delay", type=Path, metavar="FILE", help="a delay in ms every 10 ms")
    show.set_defaults(run=_show)
    make = actions.add_parser("make", help="write the trace of a model, as CSV")
    make.add_argument("model", metavar="MODEL", help='such as "cell rate 5 Mbit/s seed 2"')
    make.add_argument("--mahimahi", action="store_true", help="write a line for each opportunity")
    make.set_defaults(run=_make)
    imported = actions.add_parser("import", help="write the trace of a measurement, as CSV")
    imported.add_argument(
        "file", type=Path, metavar="FILE", help="a pcap or pcapng file, or that of iperf3 --json"
    )
    imported.add_argument("--mahimahi", action="store_true", help="write a line for an opportunity")
    imported.set_defaults(run=_import)


def _content(text: str, delay: Path | None = None) -> Content:
    from ccplay.model.moving import MODELS, SHIPPED, parse_trace
    from ccplay.model.quantities import did_you_mean, quote
    from ccplay.trace import formats, models

    if text in SHIPPED or (text.split()[:1] and text.split(maxsplit=1)[0] in MODELS):
        try:
            content = models.compute(parse_trace(text))
        except ValueError as error:
            raise UsageError(str(error)) from None
    elif Path(text).suffix or Path(text).exists():
        content = formats.read(Path(text))
    else:
        meant = did_you_mean(text, dict.fromkeys((*SHIPPED, *MODELS)))
        raise UsageError(f"there is no file or trace {quote(text)}{meant}")
    return content if delay is None else formats.with_delays(content, formats.read_delays(delay))


def _show(arguments: argparse.Namespace) -> int:
    from ccplay.trace.drawing import draw

    sys.stdout.writelines(draw(_content(arguments.what, arguments.delay)))
    return 0


def _make(arguments: argparse.Namespace) -> int:
    from ccplay.model.moving import MODELS, SHIPPED
    from ccplay.model.quantities import did_you_mean, quote

    if arguments.model not in SHIPPED and arguments.model.split()[:1] not in [[m] for m in MODELS]:
        meant = did_you_mean(arguments.model, dict.fromkeys((*MODELS, *SHIPPED)))
        raise UsageError(f"there is no model {quote(arguments.model)}{meant}")
    content = _content(arguments.model)
    remarks = [f"{arguments.model}, a model of ccplay: see ccplay/trace/models.py for its source"]
    sys.stdout.writelines(_lines(content, remarks, mahimahi=arguments.mahimahi))
    return 0


def _import(arguments: argparse.Namespace) -> int:
    from ccplay.trace.importing import read_measurement

    content = read_measurement(arguments.file)
    remarks = [f"capacity that {arguments.file.name} used: what it could not use is not in it"]
    sys.stdout.writelines(_lines(content, remarks, mahimahi=arguments.mahimahi))
    return 0


def _lines(content: Content, remarks: list[str], *, mahimahi: bool) -> Iterator[str]:
    from ccplay.trace import formats, models

    if mahimahi and not len(content.opportunities):
        if not len(content.rates):
            raise UsageError("this model sets no rate, so it can't be written with --mahimahi")
        content = models.opportunities(content.rates)
    if not mahimahi and len(content.opportunities):
        content = models.rates(content)
    if not mahimahi and content.policer[0]:
        raise UsageError("a policer can't be written as a trace: name it as a model of the link")
    return formats.write_mahimahi(content) if mahimahi else formats.write_csv(content, remarks)
