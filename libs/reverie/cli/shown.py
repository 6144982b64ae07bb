"""How answers are shown to a person: tables, times, short ids. JSON is what the gateway sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from reverie.cli.common import err, out, print_json

if TYPE_CHECKING:
    from rich.console import RenderableType

Document: TypeAlias = Mapping[str, Any]
Cell: TypeAlias = Callable[[Document], Any]

_SPANS = ((86_400 * 365, "y"), (86_400, "d"), (3_600, "h"), (60, "min"))
NOTHING = "Nothing there."


def tell(found: Any, json: bool, *lines: Any) -> None:
    """The answer as JSON, or these lines and tables."""
    if json:
        print_json(found)
        return
    for line in lines:
        show(line)


def show(line: RenderableType) -> None:
    """A text as it stands, or a table."""
    out().print(line, markup=False)


def warn(lines: Sequence[str]) -> None:
    """What a person should know beside the answer; on standard error."""
    for line in lines:
        err().print(line, markup=False, style="yellow")


def table(found: Sequence[Document], columns: Mapping[str, Cell | str]) -> RenderableType:
    """Rows under headings; the last column takes the room that is left, and folds."""
    from rich.table import Table
    from rich.text import Text

    if not found:
        return NOTHING
    made = Table(box=None, pad_edge=False, header_style="dim")
    *narrow, last = columns
    for name in narrow:
        made.add_column(name, no_wrap=True)
    made.add_column(last, overflow="fold")
    for one in found:
        made.add_row(*(Text(_cell(one, cell)) for cell in columns.values()))
    return made


def _cell(one: Document, cell: Cell | str) -> str:
    value = one.get(cell) if isinstance(cell, str) else cell(one)
    if isinstance(value, float):
        return f"{value:.2f}"
    return "" if value is None else str(value)


def short(id: Any) -> str:
    """The last eight digits of an id, by which it may be named."""
    return str(id).replace("-", "")[-8:]


def short_of(name: str) -> Cell:
    """The short form of the id under this name."""
    return lambda one: short(one[name]) if one.get(name) else ""


def line_of(text: str | None, most: int = 100) -> str:
    """A text on one line, clipped."""
    line = " ".join((text or "").split())
    return line if len(line) <= most else line[: most - 1] + "…"


def clipped(name: str, most: int = 100) -> Cell:
    """The text under this name on one line."""
    return lambda one: line_of(one.get(name), most)


def ago(name: str) -> Cell:
    """How long ago the moment under this name was."""
    return lambda one: since(one.get(name))


def since(moment: str | None, now: datetime | None = None) -> str:
    """How long ago a moment was, as `3 h ago`."""
    if not moment:
        return ""
    passed = ((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds()
    for seconds, unit in _SPANS:
        if passed >= seconds:
            return f"{int(passed // seconds)} {unit} ago"
    return "just now"
