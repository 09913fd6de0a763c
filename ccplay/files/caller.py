"""Finds and accesses the files of the user who started ccplay, with sudo(8) or without."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from ccplay.files.writing import sudo_caller


def config_folder() -> Path:
    """Return the folder of preferences and themes: below ``$XDG_CONFIG_HOME``, or ``~/.config``.

    Under sudo it is the caller's folder, so preferences are the same with sudo and without.
    """
    # Imported late: the lab imports this module too, and must start fast.
    from platformdirs import user_config_path  # noqa: PLC0415

    return _folder_of_caller("XDG_CONFIG_HOME", ".config") or user_config_path("ccplay")


def state_folder() -> Path:
    """Return the folder of automatic files: below ``$XDG_STATE_HOME``, or ``~/.local/state``.

    Under sudo it is the caller's folder.
    """
    # Imported late: the first paint must not wait for it.
    from platformdirs import user_state_path  # noqa: PLC0415

    return _folder_of_caller("XDG_STATE_HOME", ".local/state") or user_state_path("ccplay")


def _folder_of_caller(variable: str, standard: str) -> Path | None:
    """Return the folder of sudo's caller; None without sudo, or if the variable names another."""
    caller = sudo_caller()
    if caller is not None and not os.environ.get(variable, "").strip():
        with contextlib.suppress(KeyError):
            return Path(pwd.getpwuid(caller[0]).pw_dir) / standard / "ccplay"
    return None


@contextlib.contextmanager
def as_caller() -> Iterator[None]:
    """Run the ``with`` block with the rights of sudo's caller; without sudo nothing changes.

    Root then can't be made to read or write for the caller, by a symlink for example, what the
    caller may not. Affects all threads. Raises ``OSError`` if the rights can't be dropped.
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
    """Return the groups of a user with the primary group ``group``."""
    try:
        return os.getgrouplist(pwd.getpwuid(user).pw_name, group)
    except KeyError:
        return [group]
