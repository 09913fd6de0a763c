"""Algorithms of one's own: their names, what is said of mistakes in them, how labs hear of them."""

import os
import shlex
from ctypes import CDLL
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from ccplay.assets import ALGORITHMS, algorithms
from ccplay.bpf import libbpf
from ccplay.bpf.build import BuildError, Diagnostic, diagnostics
from ccplay.bpf.libbpf import LoadError
from ccplay.bpf.loaded import AlgorithmLibrary, is_ours, summary
from ccplay.bpf.support import custom_algorithms
from ccplay.cli import main
from ccplay.errors import ScenarioError, UsageError
from ccplay.model import texts
from ccplay.model.algorithms import CATALOGUE
from ccplay.scenario.reading import load
from ccplay.scenario.rules import admit, driven
from ccplay.session import launch

SOURCE = Path("mine.bpf.c")

VERIFIER = """\
libbpf: prog 'cc_ssthresh': BPF program load failed: Permission denied
libbpf: prog 'cc_ssthresh': -- BEGIN PROG LOAD LOG --
;  @ mine.bpf.c:46
0: (79) r1 = *(u64 *)(r1 +0)
;  @ mine.bpf.c:49
3: (63) *(u32 *)(r1 +1680) = r2
no write support to tcp_sock at off 1680
processed 4 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0
-- END PROG LOAD LOG --
libbpf: prog 'cc_ssthresh': failed to load: -13
"""

FLOATS = [
    "mine.bpf.c:46:1: error: A call to built-in function '__floatunsidf' is not supported.",
    "ccplay_cc.h:69:39: note: expanded from macro 'SSTHRESH'",
    "mine.bpf.c:46:1: note: could not determine the original source location for mine.bpf.c:0:0",
    "mine.bpf.c:46:1: note: could not determine the original source location for mine.bpf.c:48:13",
    "mine.bpf.c:46:1: error: A call to built-in function '__muldf3' is not supported.",
    "mine.bpf.c:46:1: note: could not determine the original source location for mine.bpf.c:48:34",
]


def test_the_verifiers_complaint_has_its_line_and_plain_words() -> None:
    (diagnostic,) = diagnostics(SOURCE, LoadError("the kernel refuses to load it", VERIFIER))
    assert (diagnostic.line, diagnostic.words) == (49, "no write support to tcp_sock at off 1680")
    assert "may write only snd_cwnd" in diagnostic.hint


def test_what_the_verifier_knew_then_is_not_its_complaint() -> None:
    loop = VERIFIER.replace(
        "no write support to tcp_sock at off 1680",
        "infinite loop detected at insn 52\ncur state: R0=scalar()\nold state: R0=scalar()",
    )
    (diagnostic,) = diagnostics(SOURCE, LoadError("the kernel refuses to load it", loop))
    assert (diagnostic.line, diagnostic.words) == (49, "infinite loop detected at insn 52")
    assert "every loop ends" in diagnostic.hint


def test_floating_point_is_reported_once_where_it_is_written() -> None:
    (diagnostic,) = diagnostics(SOURCE, BuildError(SOURCE, FLOATS))
    assert diagnostic.line == 48
    assert "no floating point" in diagnostic.hint


def test_a_line_of_the_header_is_reported_by_the_one_before_it() -> None:
    """The verifier does not say which line has called what it is in."""
    called = VERIFIER.replace(
        ";  @ mine.bpf.c:49", ";  @ mine.bpf.c:49\n2: (b7) r2 = 0\n; set @ ccplay_cc.h:220"
    )
    (diagnostic,) = diagnostics(SOURCE, LoadError("the kernel refuses to load it", called))
    assert diagnostic.line == 49
    assert diagnostic.words.endswith("(in the code that follows, or in a function that it calls)")


def test_a_header_that_is_not_there_is_reported_where_it_is_included() -> None:
    said = [
        "In file included from mine.bpf.c:18:",
        "/usr/include/stdio.h:27:10: fatal error: 'bits/libc-header-start.h' file not found",
    ]
    (diagnostic,) = diagnostics(SOURCE, BuildError(SOURCE, said))
    assert diagnostic.line == 18
    assert "no C library" in diagnostic.hint


def test_an_unknown_function_is_reported_with_the_place_of_the_known_ones() -> None:
    said = "mine.bpf.c:47:2: error: implicit declaration of function 'more' [-Werror,-Wimplicit]"
    (diagnostic,) = diagnostics(SOURCE, BuildError(SOURCE, [said]))
    assert diagnostic.words == "implicit declaration of function 'more'"
    assert "ccplay_cc.h" in diagnostic.hint


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("implicitly declaring library function 'pow' with type 'double'", "no such function"),
        ("use of undeclared identifier 'shown'", "SHOWN("),
        ("redefinition of 'shown_names'", "one SHOWN"),
        ("redefinition of 'cc_ssthresh_body'", "each operation"),
        ("redefinition of 'bbr'", "choose another"),
        ("no member named 'snd_cwnd' in 'struct sock'", "tcp_sk(sk)"),
        ("no member named 'cwnd' in 'struct tcp_sock'", ""),
        ("non-void function does not return a value", "return a window"),
    ],
)
def test_clangs_words_become_plain(words: str, hint: str) -> None:
    (diagnostic,) = diagnostics(SOURCE, BuildError(SOURCE, [f"mine.bpf.c:4:1: error: {words}"]))
    assert diagnostic.words == words
    assert hint in diagnostic.hint
    assert bool(hint) == bool(diagnostic.hint)


@pytest.mark.parametrize(
    ("error", "line", "word"),
    [
        (BuildError(SOURCE, ["mine.bpf.c:4:1: error: expected ';'"]), 4, "expected ';'"),
        (BuildError(SOURCE, ["Error at line 9: Unsupport signed division for DAG"]), 9, "signed"),
        (BuildError(SOURCE, ["clang: killed"]), None, "clang: killed"),
        (BuildError(SOURCE, []), None, "no reason"),
        (LoadError("no memory", ""), None, "no memory"),
        (LoadError("x", "libbpf: extern (func ksym) 'f': not found in kernel"), None, "'f'"),
        (LoadError("x", "libbpf: prog 'cc_init': failed to load: -524"), None, "INIT"),
        (LoadError("the kernel refuses to register it (x)", ""), None, "register"),
    ],
)
def test_every_mistake_is_reported(
    error: BuildError | LoadError, line: int | None, word: str
) -> None:
    (diagnostic,) = diagnostics(SOURCE, error)
    assert isinstance(diagnostic, Diagnostic)
    assert diagnostic.line == line
    assert word in diagnostic.words


def test_every_source_states_what_it_is_and_where_it_comes_from() -> None:
    for path in algorithms().values():
        assert 20 < len(summary(path)) < 100
        header = path.read_text().partition("*/")[0]
        # An equation and a year or an RFC.
        assert "=" in header
        assert "RFC" in header or any(f" {century}" in header for century in ("19", "20"))


def test_plain_names_and_ours_stand_side_by_side() -> None:
    assert {"reno.bpf", "cubic.bpf", "dctcp.bpf", "westwood-plus.bpf"} <= set(algorithms())
    assert "template.bpf" not in algorithms()
    assert set(algorithms()).isdisjoint(CATALOGUE)
    library = AlgorithmLibrary()
    assert library.name("vegas") == library.name("vegas.bpf") == "vegas.bpf"
    assert library.source("vegas") == ALGORITHMS / "vegas.bpf.c"
    assert library.source("bbr") is None
    assert library.display_name("reno") == "reno"
    library.add_custom([SOURCE])
    assert (library.name("mine"), library.source("mine")) == ("mine", SOURCE)


def test_names_of_other_labs_are_known_by_their_form() -> None:
    assert is_ours("cc3f2a_vegas")
    assert not any(is_ours(name) for name in CATALOGUE)


@pytest.mark.parametrize("name", ["reno.bpf.c", "Mine.bpf.c", "a b.bpf.c", "x" * 16 + ".bpf.c"])
def test_names_that_cant_be(name: str) -> None:
    with pytest.raises(UsageError, match=r"name|Linux"):
        custom_algorithms([Path(name)])


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="both called"):
        custom_algorithms([Path("a/x.bpf.c"), Path("b/x.bpf.c")])


def test_a_lab_hears_of_files_on_its_command_line() -> None:
    *_, directory, machine, file = launch.inner_argv(custom=[SOURCE])
    assert (directory, machine, file) == (str(Path.cwd()), "", str(SOURCE.absolute()))
    *_, line = launch.lab_argv("box", None, [Path("a b.c")])
    assert shlex.split(line)[2:4] == ["--algorithm", "a b.c"]


def test_a_scenario_may_use_the_name_once_it_is_admitted_and_records_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "custom_algorithms", set())
    path = tmp_path / "x.toml"
    path.write_text('duration = "1 s"\ntimeline = [{ at = "0 s", do = "start-flow", cc = "mine" }]')
    with pytest.raises(ScenarioError, match="unknown congestion control"):
        load(path)
    admit(["mine"])
    (case,) = driven(load(path), {"mine": "00ff"}).cases
    assert case.build.algorithms == {"mine": "00ff"}


def test_new_writes_a_template_and_never_over_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["algorithm", "new", "mine"]) == 0
    assert capsys.readouterr().out == "mine.bpf.c\n"
    written = SOURCE.read_text()
    assert "NAME_HERE" not in written
    assert "mine: describe in one sentence" in written
    assert main(["algorithm", "new", "mine"]) == UsageError.exit_code
    assert main(["algorithm", "new", "cubic"]) == UsageError.exit_code
    assert SOURCE.read_text() == written


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "loop", "device", "huge"])
def test_what_is_no_source_is_reported_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """And at once: a pipe would never end, nor would a device."""
    path = tmp_path / SOURCE
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "loop":
            path.symlink_to(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "huge":
            with path.open("wb") as file:
                file.truncate(1 << 32)
    assert main(["algorithm", "check", str(path)]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("ccplay: ")
    assert SOURCE.name in said
    assert len(summary(path)) < 100


def test_list_names_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algorithm", "list"]) == 0
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines()] == list(algorithms())


@pytest.mark.parametrize(("version", "held"), [((1, 1), 8), ((1, 2), 7), ((1, 5), 7)])
def test_the_descriptor_that_is_closed_is_the_only_one_of_the_link(
    version: tuple[int, int], held: int
) -> None:
    """A copy would leave libbpf's own open, and a replaced algorithm in the kernel."""
    lib = SimpleNamespace(
        libbpf_major_version=lambda: version[0],
        libbpf_minor_version=lambda: version[1],
        bpf_map__attach_struct_ops=lambda _: 1,
        bpf_link__fd=lambda _: 7,
        bpf_map__fd=lambda _: 6,
        bpf_link_create=lambda *_: 8,
    )
    assert libbpf._register(cast(CDLL, lib), 5, []) == held
