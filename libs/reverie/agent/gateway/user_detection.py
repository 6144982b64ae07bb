"""Finds who uses this machine: the setting `user`, git's e-mail, or the login name.

Of git's files only the user's own are read: a clone must not say who somebody is. Hooks wait for
these imports, so only light modules are used.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CONFIG_CHARS = 100_000
MAX_NAME_CHARS = 200


def detect_user(configured: str, environ: Mapping[str, str]) -> str:
    """The name of the user; empty if nothing says it. The environment goes before `configured`."""
    name = environ.get("REVERIE_USER") or configured or _git_email(environ) or _login_name(environ)
    return name.strip()[:MAX_NAME_CHARS]


def _git_email(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME") or os.path.expanduser("~")
    config_home = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    for path in (os.path.join(home, ".gitconfig"), os.path.join(config_home, "git", "config")):
        if email := _read_email(path):
            return email
    return ""


def _read_email(path: str) -> str:
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(MAX_CONFIG_CHARS).splitlines()
    except OSError:
        return ""
    email = section = ""
    for line in map(str.strip, lines):
        if line.startswith("["):
            section = line.strip("[]").strip().lower()
        elif section == "user" and line.partition("=")[0].strip().lower() == "email":
            # What follows a space and a comment mark is no part of the value.
            value = line.partition("=")[2].partition(" ;")[0].partition(" #")[0]
            email = value.strip().strip('"')
    return email


def _login_name(environ: Mapping[str, str]) -> str:
    name = environ.get("LOGNAME") or environ.get("USER")
    if name:
        return name
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""
