"""The ways to run a lab that ``ccplay doctor`` ends with."""

from __future__ import annotations

import os

import pytest

from ccplay.doctor import Way, further, ways
from ccplay.guest import boot
from ccplay.session import launch


@pytest.mark.parametrize(
    ("lacks", "user", "command"),
    [
        (("", "", ""), 0, ""),
        (("", "", "none"), 0, "ccplay guest"),
        (("not root", "", "none"), 1000, "ccplay guest"),
        (("not root", "", ""), 1000, "sudo ccplay"),
        (("not root", "forbidden", "none"), 1000, "sudo ccplay doctor"),
        (("no namespaces", "no namespaces", ""), 0, ""),
    ],
)
def test_one_command_gets_further(
    lacks: tuple[str, ...], user: int, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(boot, "is_possible", lambda: True)
    names = ("root", "rootless", "guest")
    chain = [Way(name, lack, "") for name, lack in zip(names, lacks, strict=True)]
    assert further(chain) == command


def test_the_chain_reports_what_each_way_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(launch, "rootless_refusal", lambda: "forbidden")
    monkeypatch.setattr(launch, "root_refusal", lambda: None)
    monkeypatch.setattr(boot, "lack", lambda: None)
    monkeypatch.setattr(boot, "cost", lambda: "costs little")
    root, rootless, guest, replay = ways()
    assert (root.lack, rootless.lack, guest.lack, replay.lack) == (
        *("you are not root", "forbidden"),
        *("", ""),
    )
    assert guest.gives.endswith("costs little")
