"""How many tokens and entries each part of the block at session start may take. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from reverie.domain.errors import Invalid

MOST_TOKENS = 100_000
MOST_ENTRIES = 500
NEAR_FULL = 0.8
"""From this share on a warning says that a part runs full."""


class Part(StrEnum):
    """What a budget is given to.

    `hot`: identity, what is pinned, conventions, commands, tasks, preferences, what much depends
    on; `files`: what the open files need, where some are named; `warm`: lessons, decisions,
    background.
    """

    HOT = "hot"
    FILES = "files"
    STALE = "stale"
    WARM = "warm"
    SESSION = "session"


@dataclass(frozen=True)
class Budgets:
    """Tokens of each part, and how many entries the block has at most."""

    hot: int = 800
    warm: int = 800
    stale: int = 200
    session: int = 200
    files: int = 400
    entries: int = 50

    def of(self, part: Part) -> int:
        """The tokens of a part."""
        tokens: int = getattr(self, part.value)
        return tokens

    def without_files(self) -> Budgets:
        """The same where no file is open."""
        return replace(self, files=0)

    @property
    def total(self) -> int:
        """The tokens of all parts together."""
        return sum(self.of(part) for part in Part)

    def within(self, tokens: int) -> Budgets:
        """The same proportions in another total, rounded down."""
        whole = max(self.total, 1)
        parts = {part.value: max(tokens, 0) * self.of(part) // whole for part in Part}
        return Budgets(**parts, entries=self.entries)

    def changed(self, asked: Mapping[str, int]) -> Budgets:
        """The same with other numbers for some. Raises `Invalid` naming the first wrong one."""
        made = replace(self, **asked)
        for name, number in vars(made).items():
            most = MOST_ENTRIES if name == "entries" else MOST_TOKENS
            if not 0 <= number <= most:
                raise Invalid(name, f"must lie between 0 and {most}")
        if made.total > MOST_TOKENS:
            raise Invalid("total", f"the parts come to {made.total} tokens: {MOST_TOKENS} at most")
        return made


DEFAULT = Budgets()
