"""The help of `reverie` itself: asked for first, so it is made with little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table

Panels = Mapping[str, Iterable[tuple[str, str]]]


def print_help(usage: str, said: str, panels: Panels, codes: str) -> None:
    """Prints the usage, what is said of the command, each panel of names, and the exit codes."""
    console = Console(highlight=False)
    for part in _parts(usage, said, panels, codes):
        console.print(part)


def _parts(usage: str, said: str, panels: Panels, codes: str) -> Iterator[RenderableType]:
    yield Padding(f"[yellow]Usage:[/] [bold]{escape(usage)}[/]", 1)
    yield Padding(said, (0, 1, 1, 1))
    widest = max(len(name) for names in panels.values() for name, _ in names)
    for title, names in panels.items():
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold cyan", no_wrap=True, min_width=widest)
        table.add_column()
        for name, line in names:
            table.add_row(name, line)
        yield Panel(table, title=title, title_align="left", border_style="dim")
    yield Padding(codes, (1, 1))
