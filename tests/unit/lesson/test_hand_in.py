"""The page that a student hands in has answers, measured values, figures and the scenario."""

from pathlib import Path

import pytest

from ccplay.cli import main
from ccplay.lesson import library
from ccplay.lesson.course import Judgement, RunRecording, TakenLesson
from ccplay.lesson.library import open_lesson
from tests.events import PLAYGROUND
from tests.unit.lesson.test_reading import HEAD, PAGES

LINKS = "[go](https://a.example/x) <https://a.example/y> ![picture](https://a.example/z.png)"


@pytest.fixture
def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a temporary folder, and return the file of a lesson with hostile text in it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.toml"
    evil = PAGES.replace(
        "Read *this*.", f"Read *this* <script>alert(1)</script> [x](javascript:y). {LINKS}"
    )
    file.write_text(HEAD + evil)
    return file


def take(file: Path, recording: Path) -> None:
    opened = open_lesson(str(file))
    course = TakenLesson(opened.lesson)
    turn = course.turns[0]
    turn.answer, turn.correct = 1.0, True
    turn.verdict = Judgement({"rate": 9.4, "top": 40.0}, 1.0)
    turn.run = RunRecording(str(recording), 1.0, 6.0)
    library.save_progress(opened, course)


def test_answers_and_figures_are_handed_in_on_one_page(
    lesson: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    take(lesson, PLAYGROUND)
    assert main(["lesson", str(lesson), "--hand-in", "Ann <b> Lee"]) == 0
    assert capsys.readouterr().out.strip() == "mine-ann-b-lee.html"
    page = Path("mine-ann-b-lee.html").read_text(encoding="utf-8")
    assert "Ann &lt;b&gt; Lee" in page
    assert "<b>1 of 1</b> answers right; 1 of 2 questions not answered" in page
    assert "Answer: <b>fast</b>" in page
    assert "9.40 Mbit/s" in page
    assert page.count("<svg") == 1
    assert "flow 1" in page
    assert "flow 2" not in page, "it started later"
    assert "start-flow&#34;" in page, "the scenario itself"
    assert "<script" not in page
    assert "<a " not in page
    assert "<img" not in page
    assert "![picture](https://a.example/z.png)" in page, "shown as it is written"
    assert "Not revealed yet." in page


def test_a_recording_that_is_gone_leaves_the_answers(lesson: Path, tmp_path: Path) -> None:
    take(lesson, tmp_path / "gone.ccplay")
    assert main(["lesson", "--hand-in", str(lesson)]) == 0
    page = Path("mine.html").read_text(encoding="utf-8")
    assert "no longer exists" in page
    assert "Answer: <b>fast</b>" in page


def test_nothing_is_handed_in_before_a_page_was_taken(
    lesson: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lesson", str(lesson), "--hand-in", "Ann"]) == 2
    assert "nothing to hand in yet" in capsys.readouterr().err


def test_a_check_reports_what_a_lesson_has(
    lesson: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lesson", str(lesson), "--check"]) == 0
    assert "2 pages, 2 questions, runs 15 s" in capsys.readouterr().out


def test_without_a_name_lessons_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson"]) == 0
    assert "bufferbloat " in capsys.readouterr().out
