"""Token and entry budgets of the sections of the session-start context block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from reverie.domain.core.errors import InvalidInput

MAX_TOKENS = 100_000
MAX_ENTRIES = 500
NEARLY_FULL_SHARE = 0.8
"""Share of a budget from which a warning is given."""


class BudgetSection(StrEnum):
    """The parts of the budget.

    `hot`: identity, pinned memories, conventions, commands, tasks, preferences, memories that much
    depends on. `files`: memories for the open files, if some are named. `warm`: lessons, decisions,
    background.
    """

    HOT = "hot"
    FILES = "files"
    STALE = "stale"
    WARM = "warm"
    SESSION = "session"


@dataclass(frozen=True)
class ContextBudgets:
    """Tokens of each part, and how many entries the block has at most."""

    hot: int = 800
    warm: int = 800
    stale: int = 200
    session: int = 200
    files: int = 400
    entries: int = 50

    def tokens_for(self, part: BudgetSection) -> int:
        """The tokens of a part."""
        tokens: int = getattr(self, part.value)
        return tokens

    def without_files(self) -> ContextBudgets:
        """Returns the budgets for the case that no file is open."""
        return replace(self, files=0)

    @property
    def total(self) -> int:
        """The tokens of all parts together."""
        return sum(self.tokens_for(part) for part in BudgetSection)

    def scale_to(self, tokens: int) -> ContextBudgets:
        """The same proportions in another total, rounded down."""
        current_total = max(self.total, 1)
        parts = {
            part.value: max(tokens, 0) * self.tokens_for(part) // current_total
            for part in BudgetSection
        }
        return ContextBudgets(**parts, entries=self.entries)

    def with_changes(self, changes: Mapping[str, int]) -> ContextBudgets:
        """The same with other numbers for some.

        Raises `InvalidInput` naming the first wrong one.
        """
        updated = replace(self, **changes)
        for name, number in vars(updated).items():
            limit = MAX_ENTRIES if name == "entries" else MAX_TOKENS
            if not 0 <= number <= limit:
                raise InvalidInput(name, f"must lie between 0 and {limit}")
        if updated.total > MAX_TOKENS:
            raise InvalidInput(
                "total", f"the parts come to {updated.total} tokens: {MAX_TOKENS} at most"
            )
        return updated


DEFAULT_BUDGETS = ContextBudgets()
