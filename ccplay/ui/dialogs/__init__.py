"""The dialogs: each asks for one command and returns it, or None to change nothing."""

from ccplay.ui.dialogs.base import Dialog
from ccplay.ui.dialogs.captures import CaptureDialog
from ccplay.ui.dialogs.congestion import CongestionDialog
from ccplay.ui.dialogs.links import LinkDialog
from ccplay.ui.dialogs.mark import MarkDialog
from ccplay.ui.dialogs.queue import QueueDialog
from ccplay.ui.dialogs.short_flows import ShortFlowsDialog
from ccplay.ui.dialogs.traffic import DownloadDialog, FlowDialog, PingDialog
from ccplay.ui.dialogs.udp import UdpDialog

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
