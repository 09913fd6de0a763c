"""Either side of a shared session, presenter or spectator, with one interface for the screen."""

from __future__ import annotations

from typing import TypeAlias

from ccplay.ui.audience.following import Following
from ccplay.ui.audience.presenting import Presenting

Audience: TypeAlias = Presenting | Following
