"""What tests of MPTCP do inside their namespaces; each returns plain JSON."""

import time
from typing import Any

import msgspec

from ccplay.errors import CcplayError
from ccplay.lab import capabilities
from ccplay.lab.netns import write_sysctls
from ccplay.lab.network import build_network
from ccplay.lab.probe import Probe
from ccplay.lab.traffic.traffic import LabTraffic
from ccplay.model.base import Event
from ccplay.model.network import Topology
from ccplay.model.topologies import plan
from ccplay.traffic.flow import StartFlow


async def switched_off() -> Any:
    """Disable MPTCP in the lab's namespace; return what is reported, and a flow's refusal."""
    write_sysctls({"net.mptcp.enabled": 0})
    (feature,) = capabilities.discover().mptcp
    return msgspec.to_builtins(feature), await _refusal(StartFlow(mptcp=True))


async def unknown_scheduler() -> str:
    """Return the refusal of a flow with a scheduler that no kernel has."""
    return await _refusal(StartFlow(mptcp=True, scheduler="nobody"))


async def _refusal(command: StartFlow) -> str:
    built = build_network(plan(Topology(kind="dumbbell", pairs=1)), lambda *_: None)
    probe, events = Probe(built.namespaces, []), list[Event]()
    traffic = LabTraffic(built.namespace, probe, events.append, time.monotonic, built.network)
    try:
        await traffic.start(command)
    except CcplayError as error:
        return str(error)
    finally:
        await traffic.close()
        probe.close()
        built.close()
    return ""
