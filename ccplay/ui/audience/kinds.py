"""The interface between a screen and its audience, the same for presenter and spectator."""

from __future__ import annotations

from typing import TypeAlias

from ccplay.ui.audience.following import Following
from ccplay.ui.audience.presenting import Presenting

Audience: TypeAlias = Presenting | Following
