"""Takes each lesson from first to last page in a real lab, with the measured answers.

``python -m tests.bench lessons --repeats 10`` checks that lessons teach what runs show.
"""

import argparse
import statistics
import sys
from collections import defaultdict

from rich.console import Console
from rich.table import Table

from ccplay.lesson.course import right_words
from ccplay.lesson.headless import PageResult, run_lesson
from ccplay.lesson.library import open_lesson, shipped
from ccplay.model.commands import Build
from ccplay.scenario import lesson
from ccplay.session.launch import lab_argv
from ccplay.stream.sources import LabSource, Source


def _source(build: Build) -> Source:
    return LabSource(lab_argv(), build)


def _ignore(_: PageResult) -> None:
    pass


async def run(console: Console, words: list[str] | None = None) -> None:
    """Take all or the named lessons; print how often each question was answered as explained."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench lessons")
    parser.add_argument("names", nargs="*", metavar="LESSON")
    parser.add_argument("--repeats", type=int, default=1)
    wanted = parser.parse_args(words or [])
    table = Table("lesson", "question", "as explained", "right answer", "measured", title="Lessons")
    for name in wanted.names or shipped():
        opened = open_lesson(name)
        found: dict[int, list[PageResult]] = defaultdict(list)
        untrusted = 0
        for _ in range(wanted.repeats):
            outcome = await run_lesson(opened, _source, _ignore)
            untrusted += not outcome.health.trustworthy
            for text in outcome.errors:
                print(f"{name}: {text}", file=sys.stderr)
            for taken in outcome.taken:
                found[taken.number].append(taken)
        for number, each in found.items():
            _row(table, name, number, each)
        if untrusted:
            print(f"{name}: {untrusted} runs on a machine too busy to trust", file=sys.stderr)
    console.print(table)


def _row(table: Table, name: str, number: int, taken: list[PageResult]) -> None:
    page = taken[0].page
    if page.question is None:
        return
    ok = sum(each.ok for each in taken)
    answers = {right_words(page, each.verdict) for each in taken}
    lines = []
    for key, measure in page.measures.items():
        known = [v for each in taken if (v := each.verdict.values.get(key)) is not None]
        if known:
            low, high = (lesson.format_value(measure, bound(known)) for bound in (min, max))
            middle = lesson.format_value(measure, statistics.median(known))
            lines.append(f"{measure.text}: {low} to {high}, median {middle}")
    right = answers.pop() if len(answers) == 1 else f"{len(answers)} answers"
    asked = f"{number}. {page.question.ask}"
    table.add_row(name, asked, f"{ok} of {len(taken)}", right, "\n".join(lines))
