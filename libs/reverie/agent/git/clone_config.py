"""Overrides git settings by which a clone could choose the programs that git runs.

`.git/config` comes with a folder that was unpacked or copied, and hooks run git in it unasked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

ConfigValue = tuple[str, str]

FIXED_VALUES: Final[tuple[ConfigValue, ...]] = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("log.showSignature", "false"),
    ("diff.submodule", "short"),
)
PROGRAM_SETTINGS: Final = (
    r"^(core\.(sshcommand|askpass)|filter\..*|remote\..*\.(uploadpack|vcs)|credential\..*)$"
)
"""Settings of which a clone's own values are replaced by those of the user."""
ALLOWED_PROTOCOLS: Final = "https:ssh"
"""For a clone that lacks objects, so that git fetches them. `ext` and `file` run programs."""
DIFF_COMMANDS: Final = frozenset({"diff", "diff-tree", "log", "show"})
DIFF_OPTIONS: Final = ("--no-ext-diff", "--no-textconv")
"""Options of each command that may compare files: no program of a `diff` driver runs."""
_CLONE_SCOPES: Final = frozenset({"local", "worktree"})
_NEUTRAL_VALUES: Final = (
    (re.compile(r"core\.sshcommand"), "ssh"),
    (re.compile(r"^remote\..*\.uploadpack"), "git-upload-pack"),
    (re.compile(r"^filter\..*\.required"), "false"),
)


def parse_overrides(output: bytes) -> list[ConfigValue]:
    """Builds the values that replace those of the clone.

    `output` is that of `git config -z --show-scope --get-regexp`: scopes, each followed by a name
    and a value.
    """
    parts = iter(output.decode(errors="surrogateescape").split("\0"))
    of_clone, of_user = dict[str, None](), list[ConfigValue]()
    for scope, (name, _, value) in (
        (scope, entry.partition("\n")) for scope, entry in zip(parts, parts, strict=False)
    ):
        if scope in _CLONE_SCOPES:
            of_clone[name] = None
        else:
            of_user.append((name, value))
    return [
        *((name, _neutral_value(name)) for name in of_clone),
        *((name, value) for name, value in of_user if name in of_clone),
    ]


def _neutral_value(name: str) -> str:
    return next((value for pattern, value in _NEUTRAL_VALUES if pattern.fullmatch(name)), "")


def encode_config(
    values: Iterable[ConfigValue], environment: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The variables that add values to git's configuration, after those already there."""
    try:
        count = int(environment.get("GIT_CONFIG_COUNT") or 0)
    except ValueError:
        count = 0
    for name, value in values:
        yield f"GIT_CONFIG_KEY_{count}", name
        yield f"GIT_CONFIG_VALUE_{count}", value
        count += 1
    yield "GIT_CONFIG_COUNT", str(count)
