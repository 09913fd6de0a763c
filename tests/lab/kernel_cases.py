"""What tests of the kernel's own disciplines do inside their namespaces, here or in the guest."""

import asyncio
from typing import Any

from ccplay.errors import CommandError, UnsupportedError
from ccplay.lab import qdisc_options, qdiscs
from ccplay.lab.htb import CLASS
from ccplay.lab.rtnl import NetlinkSocket
from ccplay.model import tc
from ccplay.model.base import Option
from ccplay.model.commands import SetLink
from ccplay.model.values import LINK_OFF, LinkSetting, Qdisc
from tests.lab.model_cases import EVERY_S, pings
from tests.lab.network_cases import Bench, bench


async def every(
    wanted: dict[str, dict[str, Option]],
    settings: list[dict[str, Any]],
    faults: list[dict[str, Any]],
    count: int,
) -> dict[str, Any]:
    """Run all cases of the guest in one guest, because it takes long to boot."""
    return {
        "kinds": await whole(wanted, "netem"),
        "links": await links(settings),
        "faults": await pings("netem", faults, count, EVERY_S),
    }


async def whole(wanted: dict[str, dict[str, Option]], engine: str) -> dict[str, dict[str, Any]]:
    """Install every kind with all of its parameters, under load, and return what the kernel has.

    For each: the reported setting, and ``TCA_OPTIONS`` as made by ccplay and by tc's line; or the
    error.
    """
    seen: dict[str, dict[str, Any]] = {}
    async with bench(engine=engine) as made, made.flood(12_000_000):
        await made.until(lambda: made.leaf()["qlen"] >= 50)
        for kind, parameters in wanted.items():
            asked = qdiscs.validate(Qdisc(kind=kind, options=parameters))
            try:
                seen[kind] = await _compare(made, asked)
            except (CommandError, UnsupportedError) as error:
                seen[kind] = {"refused": str(error)}
            await made.shaper.apply(
                made.there, LinkSetting(qdisc=Qdisc(kind="pfifo", options={"limit": 100}))
            )
    return seen


async def links(settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Change a link with ccplay and then with tc's lines; return what the kernel has after each."""
    seen = []
    for setting in settings:
        async with bench(engine="netem") as made:
            await made.shaper.apply(made.there, LinkSetting(**setting))
            ours = await _link_image(made)
            other = 10**9 if "rate" in setting else None
            await made.shaper.apply(made.there, LinkSetting(rate=other, **OFF))
            command = SetLink(link=made.there.name, **setting)
            said = ""
            for line in command.as_tc(made.built.network, lambda _: LinkSetting()):
                # The device and the redirection are there already, which tc and ip report.
                if " replace " in line:
                    node = made.there.src if "class" in line else made.there.dst
                    said += await made.run(node, *line.split())
            seen.append({"ours": ours, "tc": await _link_image(made), "said": said})
    return seen


OFF: dict[str, Any] = {
    **dict.fromkeys(("delay_us", "jitter_us", "loss", "reorder", "duplicate", "corrupt"), 0),
    **LINK_OFF,
}


async def _link_image(made: Bench) -> dict[str, Any]:
    """Return netem's parameters with its limit and rate, and the class of HTB."""
    netem = await made.run(made.there.dst, "tc", "qdisc", "show")
    htb = await made.run(made.there.src, "tc", "class", "show", "dev", made.there.interface)
    (line,) = (each for each in netem.splitlines() if " netem " in each)
    # Handles count up, and each has a seed of its own.
    return {"netem": line.partition(" root ")[2].partition(" seed ")[0], "htb": htb}


async def _compare(made: Bench, asked: Qdisc) -> dict[str, Any]:
    (changed,) = await made.shaper.apply(made.there, LinkSetting(qdisc=asked))
    assert changed.setting.qdisc is not None
    before = made.leaf()["bytes"]
    await made.until(lambda: made.leaf()["bytes"] > before + 30_000)
    ours = _image(made)
    await made.shaper.apply(
        made.there, LinkSetting(qdisc=Qdisc(kind="pfifo", options={"limit": 100}))
    )
    line = tc.queue_line(asked, made.there.interface)
    assert line is not None
    said = await _run(made, line.split())
    return {"told": changed.setting.qdisc.options, "ours": ours, "tc": _image(made), "said": said}


async def _run(made: Bench, argv: list[str]) -> str:
    namespace = made.built.namespace(made.there.src)
    run = await asyncio.create_subprocess_exec(
        *("nsenter", f"--net={namespace.path}", *argv),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await run.communicate()
    return said.decode()


_COUNTED = {"sfq": 24}
"""Number of bytes at the end of ``TCA_OPTIONS`` that count drops and marks: ``struct
tc_sfqred_stats``."""


def _image(made: Bench) -> dict[str, Any]:
    namespace = made.built.namespace(made.there.src)
    with NetlinkSocket(namespace) as routes:
        index = namespace.interface_index(made.there.interface)
        kind, image = qdiscs.find_qdisc(routes, index, CLASS)
    return {
        "kind": kind,
        "options": qdisc_options.decode(kind, image) if kind else {},
        "raw": image[: len(image) - _COUNTED.get(kind or "", 0)].hex(),
    }
