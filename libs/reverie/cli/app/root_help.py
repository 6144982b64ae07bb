"""Renders the help of `reverie` itself with few imports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table

Panels = Mapping[str, Iterable[tuple[str, str]]]


def print_help(usage: str, description: str, panels: Panels, epilog: str) -> None:
    """Prints the usage, what is said of the command, each panel of names, and the exit codes."""
    console = Console(highlight=False)
    for section in _render_sections(usage, description, panels, epilog):
        console.print(section)


def _render_sections(
    usage: str, description: str, panels: Panels, epilog: str
) -> Iterator[RenderableType]:
    yield Padding(f"[yellow]Usage:[/] [bold]{escape(usage)}[/]", 1)
    yield Padding(description, (0, 1, 1, 1))
    widest = max(len(name) for names in panels.values() for name, _ in names)
    for title, names in panels.items():
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold cyan", no_wrap=True, min_width=widest)
        table.add_column()
        for name, line in names:
            table.add_row(name, line)
        yield Panel(table, title=title, title_align="left", border_style="dim")
    yield Padding(epilog, (1, 1))
