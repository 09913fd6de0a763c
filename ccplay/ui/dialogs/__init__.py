"""The dialogs: each asks for one command and returns it, or None to change nothing."""

from ccplay.ui.dialogs.base import Dialog
from ccplay.ui.dialogs.links import CaptureDialog, LinkDialog, QueueDialog
from ccplay.ui.dialogs.session import MarkDialog
from ccplay.ui.dialogs.traffic import (
    CongestionDialog,
    DownloadDialog,
    FlowDialog,
    PingDialog,
    ShortFlowsDialog,
    UdpDialog,
)

__all__ = [
    "CaptureDialog",
    "CongestionDialog",
    "Dialog",
    "DownloadDialog",
    "FlowDialog",
    "LinkDialog",
    "MarkDialog",
    "PingDialog",
    "QueueDialog",
    "ShortFlowsDialog",
    "UdpDialog",
]
