"""Prints results: JSON as the gateway sent it, or tables, ages and short ids for a person.

All that commands print and ask goes through this module, which removes control characters.
"""

from __future__ import annotations

import json as jsonlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from reverie.domain.text.control_characters import strip_control_characters

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

JsonObject: TypeAlias = Mapping[str, Any]
CellSource: TypeAlias = Callable[[JsonObject], Any]
Columns: TypeAlias = Mapping[str, CellSource | str]
"""Each column's title, with the field that it shows or a function of the row."""
AdvanceProgress: TypeAlias = Callable[[int], None]

_AGE_UNITS = ((86_400 * 365, "y"), (86_400, "d"), (3_600, "h"), (60, "min"))
_REPORT_EVERY_BYTES = 16 * 1024 * 1024
EMPTY_MESSAGE = "No results."
PIPE_WIDTH = 1000
"""The columns of a file or a pipe: a row of a table stays one line for grep."""


def out() -> Console:
    """A console on standard output, with colours only on a terminal and without NO_COLOR."""
    from reverie.cli.app.terminal import SafeConsole

    console = SafeConsole(highlight=False, soft_wrap=True, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def err() -> Console:
    """A console on standard error."""
    from reverie.cli.app.terminal import SafeConsole

    return SafeConsole(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def print_json(value: Any, *, indent: int | None = 2, is_error: bool = False) -> None:
    """Prints one JSON document in printable ASCII; control characters are escaped."""
    document = jsonlib.dumps(value, indent=indent, default=str)
    click.echo(document.replace("\x7f", "\\u007f"), err=is_error)


def print_exact(text: str) -> None:
    """Prints a text byte by byte for a program; on a terminal without control characters."""
    click.echo(strip_control_characters(text) if sys.stdout.isatty() else text)


def confirm(question: str, *, default: bool = False, abort: bool = True) -> bool:
    """Asks on standard error. Raises `click.Abort` for a no, unless `abort` is false."""
    return click.confirm(strip_control_characters(question), default, abort=abort, err=True)


def print_plain(line: RenderableType) -> None:
    """Prints a text without markup, or a table."""
    out().print(line, markup=False)


def read_text(argument: str) -> str:
    """The argument, or standard input if the argument is `-`."""
    return sys.stdin.read() if argument == "-" else argument


def print_warnings(lines: Sequence[str]) -> None:
    """Prints warnings to standard error."""
    for line in lines:
        err().print(line, markup=False, style="yellow")


def print_degraded(response: JsonObject) -> None:
    """Warns of what the answer had to do without."""
    print_warnings([f"not available: {name}" for name in response["degraded"]])


def build_table(
    rows: Sequence[JsonObject], columns: Columns, empty: str = EMPTY_MESSAGE
) -> RenderableType:
    """Builds a table; its last column uses the remaining width and wraps."""
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return empty
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


def plural(count: int, noun: str) -> str:
    """The count with its noun, as `1 turn`, `2 turns` and `2 memories`."""
    if count == 1:
        return f"1 {noun}"
    is_regular = not noun.endswith("y") or noun[-2] in "aeiou"
    return f"{count:,} {noun + 's' if is_regular else noun[:-1] + 'ies'}"


def short_id(id: Any) -> str:
    """The last eight digits of an id; commands accept them in place of the id."""
    return str(id).replace("-", "")[-8:]


def short_id_cell(name: str) -> CellSource:
    """A cell with the short form of the id in this field."""
    return lambda row: short_id(row[name]) if row.get(name) else ""


def one_line(text: str | None, limit: int = 100) -> str:
    """A text on one line, cut to `limit` characters."""
    line = " ".join((text or "").split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def text_cell(name: str, limit: int = 100) -> CellSource:
    """A cell with the text of this field on one line."""
    return lambda row: one_line(row.get(name), limit)


def age_cell(name: str) -> CellSource:
    """A cell with the age of the time in this field."""
    return lambda row: format_age(row.get(name))


def abbreviate_home(path: Path | str) -> str:
    """A path with `~` for the user's home folder."""
    text, home = str(path), str(Path.home())
    return "~" + text[len(home) :] if text == home or text.startswith(home + "/") else text


def format_age(moment: str | None) -> str:
    """The age of a time, such as `3 h ago`."""
    if not moment:
        return ""
    age = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    for seconds, unit in _AGE_UNITS:
        if age >= seconds:
            return f"{int(age // seconds)} {unit} ago"
    return "just now"


@contextmanager
def show_progress(label: str, size: int | None) -> Iterator[AdvanceProgress]:
    """Shows a bar on a terminal, and elsewhere a line for every 16 MiB, on standard error."""
    if err().is_terminal:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        with Progress(
            TextColumn(label), BarColumn(), DownloadColumn(), console=err(), transient=True
        ) as bar:
            task = bar.add_task(label, total=size)
            yield lambda count: bar.advance(task, count)
        return
    done = 0

    def report(count: int) -> None:
        nonlocal done
        before, done = done, done + count
        if before // _REPORT_EVERY_BYTES != done // _REPORT_EVERY_BYTES:
            err().print(f"{label}: {done // 1024 // 1024} MiB", markup=False)

    yield report
