"""How results are printed for a person: tables, ages, short ids. JSON is what the gateway sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from reverie.cli.app.common import err, out, print_json

if TYPE_CHECKING:
    from rich.console import RenderableType

JsonObject: TypeAlias = Mapping[str, Any]
CellSource: TypeAlias = Callable[[JsonObject], Any]

_AGE_UNITS = ((86_400 * 365, "y"), (86_400, "d"), (3_600, "h"), (60, "min"))
EMPTY_MESSAGE = "Nothing there."


def print_result(result: Any, json: bool, *lines: Any) -> None:
    """The answer as JSON, or these lines and tables."""
    if json:
        print_json(result)
        return
    for line in lines:
        print_plain(line)


def print_plain(line: RenderableType) -> None:
    """A text as it stands, or a table."""
    out().print(line, markup=False)


def print_warnings(lines: Sequence[str]) -> None:
    """What a person should know beside the answer; on standard error."""
    for line in lines:
        err().print(line, markup=False, style="yellow")


def build_table(
    rows: Sequence[JsonObject], columns: Mapping[str, CellSource | str]
) -> RenderableType:
    """Rows under headings; the last column takes the room that is left, and folds."""
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return EMPTY_MESSAGE
    table = Table(box=None, pad_edge=False, header_style="dim")
    *narrow, last = columns
    for name in narrow:
        table.add_column(name, no_wrap=True)
    table.add_column(last, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_format_cell(row, cell)) for cell in columns.values()))
    return table


def _format_cell(row: JsonObject, cell: CellSource | str) -> str:
    value = row.get(cell) if isinstance(cell, str) else cell(row)
    if isinstance(value, float):
        return f"{value:.2f}"
    return "" if value is None else str(value)


def short_id(id: Any) -> str:
    """The last eight digits of an id, by which it may be named."""
    return str(id).replace("-", "")[-8:]


def short_id_cell(name: str) -> CellSource:
    """The short form of the id under this name."""
    return lambda row: short_id(row[name]) if row.get(name) else ""


def one_line(text: str | None, limit: int = 100) -> str:
    """A text on one line, clipped."""
    line = " ".join((text or "").split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def text_cell(name: str, limit: int = 100) -> CellSource:
    """The text under this name on one line."""
    return lambda row: one_line(row.get(name), limit)


def age_cell(name: str) -> CellSource:
    """How long ago the moment under this name was."""
    return lambda row: format_age(row.get(name))


def format_age(moment: str | None, now: datetime | None = None) -> str:
    """How long ago a moment was, as `3 h ago`."""
    if not moment:
        return ""
    age = ((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds()
    for seconds, unit in _AGE_UNITS:
        if age >= seconds:
            return f"{int(age // seconds)} {unit} ago"
    return "just now"
