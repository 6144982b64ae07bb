"""What is wrong with a file to import: the file is refused, with each line and field."""

from __future__ import annotations

from dataclasses import dataclass, field

from reverie.domain.core.errors import Forbidden, InvalidInput, PayloadTooLarge, ReverieError

MAX_NAMED_PROBLEMS = 100
"""Problems that are named; all are counted."""


@dataclass(eq=False)
class RefusedImport(InvalidInput):
    """{field}: {reason}; nothing was imported ({count} refused in all)"""

    count: int = 1
    errors: list[dict[str, str]] = field(default_factory=list)


@dataclass
class ImportProblems:
    """The problems that were found so far."""

    count: int = 0
    named: list[dict[str, str]] = field(default_factory=list)

    def add(self, line: int, error: ReverieError, file: str | None = None) -> None:
        """Adds what is wrong with a line."""
        self.count += 1
        if len(self.named) < MAX_NAMED_PROBLEMS:
            place = f"{file}, line {line}" if file else f"line {line}"
            name, reason = _describe(error)
            self.named.append({"field": f"{place}: {name}" if name else place, "reason": reason})

    def raise_if_any(self) -> None:
        """Raises `RefusedImport` if there are problems."""
        if self.count:
            first = self.named[0]
            raise RefusedImport(first["field"], first["reason"], self.count, self.named)


def _describe(error: ReverieError) -> tuple[str, str]:
    """The field of an error and the reason; no field where the whole line is meant."""
    match error:
        case InvalidInput():
            return error.field, error.reason
        case PayloadTooLarge():
            return error.field, str(error).removeprefix(f"{error.field} ")
        case Forbidden():
            return "scope", str(error)
    return "", str(error)
