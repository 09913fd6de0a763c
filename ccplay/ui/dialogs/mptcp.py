"""The flow dialog's questions about MPTCP, or the reason why it is unavailable."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from ccplay.model.traffic_commands import PATH_MANAGERS
from ccplay.model.values import Capabilities
from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.dialogs.fields import LabelledRow, Steps

_BY_PORT, _BY_ADDRESS, _SIGNAL, _SUBFLOW = PATH_MANAGERS
_CHOICES = (
    ("", "no: TCP over one path"),
    (f"{_BY_PORT} 2", "2 subflows by source port (ndiffports)"),
    (f"{_BY_PORT} 4", "4 subflows by source port (ndiffports)"),
    (f"{_BY_ADDRESS} 8", "one for each pair of addresses (fullmesh)"),
    (f"{_SIGNAL} 8", "the kernel's: to each address of the receiver"),
    (f"{_SUBFLOW} 8", "the kernel's: from each address of the sender"),
)


class MptcpRows(Vertical):
    """Asks for MPTCP, the number of subflows, and the scheduler if there are several."""

    DEFAULT_CSS = """
    MptcpRows { height: auto; }
    MptcpRows .note { width: 1fr; height: auto; padding-left: 1; color: $text-muted; }
    """

    def __init__(self, capabilities: Capabilities, glyphs: Glyphs) -> None:
        """Offer the choices that the lab reported."""
        super().__init__()
        lack = _lack(capabilities)
        self._paths = Steps(_CHOICES, glyphs)
        note = Static(glyphs.translate(f"{glyphs.missing} {lack}"), classes="note", markup=False)
        self._rows = [LabelledRow("MPTCP", note if lack else self._paths)]
        names = [each.name for each in capabilities.schedulers if each.available]
        values = [("", "as the host has it"), *((name, name) for name in names)]
        self._scheduler = Steps(values, glyphs)
        if len(names) > 1 and not lack:
            self._rows.append(LabelledRow("scheduler", self._scheduler))

    def compose(self) -> ComposeResult:
        """Compose the rows."""
        yield from self._rows

    @property
    def chosen(self) -> dict[str, Any]:
        """The chosen values for fields of ``StartFlow``; empty without MPTCP."""
        if not self._paths.value:
            return {}
        manager, count = self._paths.value.split()
        return {
            "mptcp": True,
            "path_manager": manager,
            "subflows": int(count),
            "scheduler": self._scheduler.value or None,
        }


def _lack(capabilities: Capabilities) -> str:
    if not capabilities.mptcp:
        return "this lab does not support MPTCP: update ccplay there"
    feature = capabilities.mptcp[0]
    return "" if feature.available else f"{feature.reason}: {feature.remedy}"
