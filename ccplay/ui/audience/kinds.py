"""What a screen needs of its audience, whichever side of it the screen is on."""

from __future__ import annotations

from typing import TypeAlias

from ccplay.ui.audience.following import Following
from ccplay.ui.audience.presenting import Presenting

Audience: TypeAlias = Presenting | Following
