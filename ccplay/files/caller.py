"""Acts as the person who started ccplay, with sudo(8) or without, on what belongs to them."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from ccplay.files.writing import sudo_caller


def config_folder() -> Path:
    """Return the folder of preferences and themes: below ``$XDG_CONFIG_HOME``, or ``~/.config``.

    Under sudo it is the caller's, who finds the same preferences with sudo and without.
    """
    # The lab, which writes files too, starts without it.
    from platformdirs import user_config_path  # noqa: PLC0415

    caller = sudo_caller()
    if caller is not None and not os.environ.get("XDG_CONFIG_HOME", "").strip():
        with contextlib.suppress(KeyError):
            return Path(pwd.getpwuid(caller[0]).pw_dir) / ".config" / "ccplay"
    return user_config_path("ccplay")


def state_folder() -> Path:
    """Return the folder of what is kept unasked: below ``$XDG_STATE_HOME``, or ``~/.local/state``.

    Under sudo it is the caller's, as that of preferences.
    """
    # As above: the first paint shall not wait for it.
    from platformdirs import user_state_path  # noqa: PLC0415

    caller = sudo_caller()
    if caller is not None and not os.environ.get("XDG_STATE_HOME", "").strip():
        with contextlib.suppress(KeyError):
            return Path(pwd.getpwuid(caller[0]).pw_dir) / ".local" / "state" / "ccplay"
    return user_state_path("ccplay")


@contextlib.contextmanager
def as_caller() -> Iterator[None]:
    """Have no more rights than sudo's caller for a moment; without sudo nothing changes.

    So what the caller may not read or write, symlinks included, root does not for them. It holds
    for all threads of the process. Raises ``OSError`` where the rights can't be given up.
    """
    if (caller := sudo_caller()) is None:
        yield
        return
    user, group = caller
    groups, own_group = os.getgroups(), os.getegid()
    os.setgroups(_groups(user, group))
    try:
        os.setegid(group)
        try:
            os.seteuid(user)
            try:
                yield
            finally:
                os.seteuid(0)
        finally:
            os.setegid(own_group)
    finally:
        os.setgroups(groups)


def _groups(user: int, group: int) -> list[int]:
    """Return the groups of a user whose own one is ``group``."""
    try:
        return os.getgrouplist(pwd.getpwuid(user).pw_name, group)
    except KeyError:
        return [group]
