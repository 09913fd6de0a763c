"""The page is one file that loads nothing else, and shows foreign names as plain text."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from ccplay.cli.runs import gather
from ccplay.errors import RecordingError, UsageError
from ccplay.model.events import Hello
from ccplay.stream import wire
from ccplay.stream.sources import recorded_events
from tests.events import PLAYGROUND, recorded
from tests.ui.synthetic import stream
from tests.unit.reports import HOSTILE, PUBLISHED, case_statistics, experiment, material, variants

pytest.importorskip("matplotlib")

from ccplay.cli import main
from ccplay.report.figures.run_figures import RunDrawing
from ccplay.report.page import page
from ccplay.report.page import report_directory as directory


class Tags(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def quiet(done: int, total: int, what: str) -> None:
    assert done <= total
    assert what


def read(page: Path) -> tuple[str, Tags]:
    text = page.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    return text, tags


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of an experiment with hostile names."""
    return directory.write(
        material(experiment()), tmp_path_factory.mktemp("made") / "report", quiet
    )


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of thirteen variants, two of which fail their expectation."""
    names = ("westwood", "westwood+", *(f"cc{n}" for n in range(2, 13)))
    result = variants(*names, published=PUBLISHED, most=0.6)
    return directory.write(material(result), tmp_path_factory.mktemp("many") / "report", quiet)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page that the command line makes of a recording."""
    out = tmp_path_factory.mktemp("whole") / "report"
    assert main(["report", str(PLAYGROUND), "--to", str(out)]) == 0
    return out / "index.html"


def test_a_hostile_title_is_shown_and_not_obeyed(hostile: Path) -> None:
    text, tags = read(hostile)
    assert "script" not in tags.names
    assert HOSTILE not in text
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    # In the title, paragraph, case, note, check and scenario.
    assert text.count("&lt;script&gt;") >= 6


def test_the_page_asks_for_nothing_from_elsewhere(hostile: Path) -> None:
    text, tags = read(hostile)
    for name, value in tags.attributes:
        if name in ("src", "href", "xlink:href"):
            assert re.match(r"#|figures/|tables/|\.\./", value), (name, value)
    assert not re.search(r"url\((?!#|data:)", text)
    assert "@import" not in text


def test_a_recording_yields_a_whole_report(whole: Path) -> None:
    """A recording yields a page, and figures and tables in three formats each; links lead there."""
    out = whole.parent
    text, tags = read(whole)
    for link in {value for name, value in tags.attributes if name == "href"}:
        if link.startswith(("figures/", "tables/")):
            assert (out / link).is_file(), link
    for panel in ("cwnd-1", "queue", "rtt", "throughput", "transfer", "acked"):
        for kind in ("svg", "pdf", "png"):
            assert (out / "figures" / f"playground-{panel}.{kind}").stat().st_size > 1000
    for each in (out / "figures").glob("*.svg"):
        ET.parse(each)
    assert {each.suffix for each in (out / "tables").iterdir()} == {".md", ".csv", ".json"}
    assert "flow 1 switches reno → bbr" in text
    assert "6.18" in text
    assert "start-flow" in text  # The scenario is read off the recording.
    # Small enough to open at once: one complete run takes about 250 kB, the font 42 kB.
    assert (out / "index.html").stat().st_size < 500_000


def test_of_runs_that_are_all_drawn_the_page_shows_those_it_names() -> None:
    """With ``--all`` too the page shows each case's run closest to the median, as captioned."""
    made = material(experiment())
    drawn = {run.slug: RunDrawing(run.slug, f"<svg id={run.slug}>", []) for run in made.runs}
    text = page.render(
        made, charts=[], shown=drawn, drawing="", table_files={}, font_face="", links={}
    )
    named = {run.slug for case in made.result.statistics if (run := made.representative(case))}
    assert {slug for slug in drawn if f"id={slug}>" in text} == named
    assert len(named) < len(drawn)


def test_a_report_is_made_anew_with_the_same_bytes(hostile: Path) -> None:
    files = sorted(path for path in hostile.parent.rglob("*") if path.is_file())
    before = [path.read_bytes() for path in files]
    directory.write(material(experiment()), hostile.parent, quiet)
    assert [path.read_bytes() for path in files] == before


def test_files_of_others_are_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "report"
    out.mkdir()
    (out / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match="not from a report"):
        directory.write(material(experiment()), out, quiet)
    assert (out / "thesis.tex").read_text() == "mine"


def test_a_file_put_into_a_report_is_not_deleted(hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "report"
    shutil.copytree(hostile.parent, out)
    (out / "figures" / "mine.svg").write_text("mine")
    with pytest.raises(UsageError, match=r"mine\.svg"):
        directory.write(material(experiment()), out, quiet)
    assert (out / "figures" / "mine.svg").read_text() == "mine"


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "report").symlink_to(tmp_path / "real")
    with pytest.raises(UsageError, match="not a directory"):
        directory.write(material(experiment()), tmp_path / "report", quiet)


def test_what_is_no_recording_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("no recording\n")
    assert main(["report", str(tmp_path / "notes.txt")]) == 4
    assert "not a ccplay recording" in capsys.readouterr().err
    assert main(["report", str(tmp_path)]) == 4
    assert "not a run directory" in capsys.readouterr().err


def test_checks_are_a_line_an_expectation_and_only_failures_are_reported_one_by_one(
    many: Path,
) -> None:
    text, _ = read(many)
    assert "✗ 11 of 13" in text
    assert text.count("at most 0.6") == 1
    assert text.count("✗ alone, cc cc") == 2
    assert "✗ alone, cc cc12, run 1: 0.620" in text


def test_checks_that_held_are_not_reported_one_by_one() -> None:
    [found] = page.check_rows(variants("reno", "vegas"))
    assert (found.cases, found.words) == ("", "checkpoint ratio")
    assert (found.verdict.held, len(found.verdict.runs), found.failed) == (2, 2, [])


def test_what_was_published_of_a_whole_case_is_a_row_of_its_own(many: Path) -> None:
    text, _ = read(many)
    assert text.count("0.670 to 0.750") == 1
    assert "published for all cases together" in text
    assert "<small>published" not in text
    assert "The percentage is" not in text


def test_cases_whose_names_differ_in_a_sign_have_places_of_their_own(many: Path) -> None:
    """Each of many cases has an anchor of its own, to which the index links."""
    _, tags = read(many)
    ids = [value for name, value in tags.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    links = {value[1:] for name, value in tags.attributes if value.startswith("#case-")}
    assert len(links) == 13
    assert links <= set(ids)


def test_long_tables_are_folded(many: Path) -> None:
    text, _ = read(many)
    assert re.findall(r"<summary>(.*?)</summary>", text) == ["Flows: 26 rows"]


def test_figures_have_words_for_those_who_can_not_see_them(hostile: Path) -> None:
    text, tags = read(hostile)
    labels = [value for name, value in tags.attributes if name == "aria-label"]
    assert len(labels) == text.count("<svg ")
    assert all(labels)


def test_a_reason_that_several_cases_share_is_reported_once() -> None:
    found = experiment()
    second = [run for run in found.cases if run.name == HOSTILE]
    shared = [found.statistics[0], case_statistics(HOSTILE, second, PUBLISHED)]
    (note,) = page.notes(replace(found, statistics=shared))
    assert note.startswith("reno <b> and 1 more, ")


def test_the_page_draws_the_network(whole: Path) -> None:
    text = whole.read_text(encoding="utf-8")
    figure = text.partition('<figure class="network">')[2].partition("</figure>")[0]
    assert "pfifo 100 pkt" in figure
    assert 'role="img" aria-label="The network of the case playground, as built"' in figure
    drawn = ET.parse(whole.parent / "figures" / "network.svg").getroot()
    assert drawn.tag.endswith("svg")
    assert '<a href="figures/network.svg">' in figure


# --- a recording keeps the title of its scenario, which is the title of its report ----------------


def titled(path: Path, title: str) -> Path:
    return recorded(path, stream(seconds=3), title)


def test_a_report_has_the_title_of_the_scenario(tmp_path: Path) -> None:
    material = gather([titled(tmp_path / "x.ccplay", "The race: 50 ms")])
    assert material.title == material.result.title == "The race: 50 ms"
    assert 'title = "The race: 50 ms"' in (material.scenario_text or "")
    assert material.name == "x"


def test_two_recordings_of_one_scenario_say_it_once(tmp_path: Path) -> None:
    paths = [titled(tmp_path / f"{name}.ccplay", "The race") for name in "xy"]
    assert gather(paths).title == "The race"


def test_a_recording_without_a_title_is_called_by_its_name(tmp_path: Path) -> None:
    assert gather([titled(tmp_path / "x.ccplay", "")]).title == "x"


def test_a_copy_keeps_the_title(tmp_path: Path) -> None:
    events = recorded_events(titled(tmp_path / "x.ccplay", "The race"))
    assert gather([recorded(tmp_path / "copy.ccplay", events)]).title == "The race"


def test_a_strangers_title_is_text_of_some_length(tmp_path: Path) -> None:
    path = titled(tmp_path / "x.ccplay", "a\x1b[2Jb")
    assert gather([path]).title == "a\N{REPLACEMENT CHARACTER}[2Jb"
    first = next(each for each in stream() if isinstance(each, Hello))
    line = wire.encode(first).replace(
        b'{"event":"hello"', b'{"event":"hello","title":"%s"' % (b"x" * 501)
    )
    (tmp_path / "long.ccplay").write_bytes(line)
    with pytest.raises(RecordingError, match=r"500 - at `\$\.title`"):
        gather([tmp_path / "long.ccplay"])
