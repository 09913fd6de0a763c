"""What clang is to take of an algorithm of one's own, and what it is to refuse."""

import codecs
from pathlib import Path

import pytest

from ccplay.assets import ALGORITHMS
from ccplay.bpf.build import BuildError, build, diagnostics
from ccplay.bpf.libbpf import LoadError, register
from ccplay.bpf.support import lack
from ccplay.cli import main
from ccplay.model import texts

_missing = lack()
pytestmark = pytest.mark.skipif(_missing is not None, reason=f"{_missing}")

TEMPLATE = (ALGORITHMS / "template.bpf.c").read_text()
CUT = "return max(cwnd * KEPT / 1024, 2U);"


@pytest.mark.parametrize(
    ("cut", "wrong"),
    [
        ("cwnd = cwnd / 2;", "does not return a value"),
        ("return cwnd / 0;", "division by zero"),
        ("u32 x;\n\treturn x;", "uninitialized"),
        ("set_cwnd(sk, 4);\n\treturn 4;", "incompatible pointer"),
        ("return *(u32 *)0;", "null pointer"),
    ],
)
def test_what_is_never_meant_is_refused(tmp_path: Path, cut: str, wrong: str) -> None:
    """A warning would be overlooked when the file is saved under a running flow."""
    assert CUT in TEMPLATE
    source = tmp_path / "mine.bpf.c"
    source.write_text(TEMPLATE.replace(CUT, cut))
    with pytest.raises(BuildError, match=wrong):
        build(source)


def test_a_file_of_an_editor_that_marks_its_encoding_is_taken(tmp_path: Path) -> None:
    source = tmp_path / "mine.bpf.c"
    source.write_bytes(codecs.BOM_UTF8 + TEMPLATE.encode())
    image, warnings = build(source)
    assert image.startswith(b"\x7fELF")
    assert warnings == []


def test_the_line_of_a_mistake_is_found_under_any_name(tmp_path: Path) -> None:
    """The same text may have been built for another file before."""
    for name in ("mine", "other"):
        source = tmp_path / f"{name}.bpf.c"
        source.write_text(TEMPLATE.replace(CUT, "tcp_sk(sk)->srtt_us = 8;\n\t" + CUT))
        image, _ = build(source)
        with pytest.raises(LoadError) as refusal:
            register(image, name)
        (diagnostic,) = diagnostics(source, refusal.value)
        assert diagnostic.line == 1 + TEMPLATE[: TEMPLATE.index(CUT)].count("\n")


def test_an_endless_loop_is_refused_in_few_words(tmp_path: Path) -> None:
    """The verifier follows it for a million steps and would report each, which takes minutes."""
    source = tmp_path / "mine.bpf.c"
    loop = "u64 sum = 0;\n\tfor (u32 i = 1; i < 10000000; i++)\n\t\tsum += sum / i + cwnd;\n\t"
    source.write_text(TEMPLATE.replace(CUT, loop + "return sum;"))
    image, _ = build(source)
    with pytest.raises(LoadError) as refusal:
        register(image, "mine")
    assert len(refusal.value.log) < 2_000_000
    (diagnostic,) = diagnostics(source, refusal.value)
    assert diagnostic.line
    assert "every loop ends" in diagnostic.hint


def test_a_mistake_is_reported_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(texts, "custom_algorithms", set())
    source, scenario = tmp_path / "mine.bpf.c", tmp_path / "x.toml"
    source.write_text(TEMPLATE.replace(CUT, "return nonsense(cwnd);"))
    scenario.write_text(
        'duration = "1 s"\ntimeline = [{ at = "0 s", do = "start-flow", cc = "mine" }]'
    )
    assert main(["run", str(scenario), "--algorithm", str(source)]) == BuildError.exit_code
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("ccplay: mine.bpf.c:")
    assert "'nonsense'" in line
