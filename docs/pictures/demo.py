"""Plays the sample day on a home of its own, and draws some of its scenes as demo.svg.

Run from the root of the project: `make pictures`.
"""

from __future__ import annotations

import asyncio
import io
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text
from svg import MONO, document, element, text

from reverie.cli.demo.scenes import play_sample_day
from reverie.cli.operate.up_display import JsonUpDisplay
from reverie.embedded.reporting import Addresses
from reverie.embedded.supervision.supervisor import run_supervisor
from reverie.runtime.settings.settings import Settings

PICTURE = Path(__file__).with_name("demo.svg")
WIDTH = 80
SCENES = {"2": 11, "4": 22, "6": 20, "7": 20}
"""The scenes shown, and how many lines of each; what is left out is said by an ellipsis."""
CELL, LINE, SIZE, MARGIN, TOP = 8.43, 18, 14, 16, 48
"""Pixels: the width of a character and the height of a line, the font, and the space around."""
BACK, INK, DIM = "#1f2328", "#d1d7e0", "#8b949e"


class Stop(Exception):
    """The day is over; `shown` says whether every step showed what it should."""

    def __init__(self, shown: bool) -> None:
        super().__init__()
        self.shown = shown


class Quiet(JsonUpDisplay):
    """Says nothing of the start."""

    def up(self, addresses: Addresses) -> None:
        """Not said."""


def printed(home: Path) -> str:
    """What the day prints, with its colours. Raises `SystemExit` where it did not succeed."""
    console = Console(
        file=io.StringIO(), width=WIDTH, force_terminal=True, color_system="truecolor"
    )
    settings = Settings(home=home, spans_file=home / "spans" / "spans.jsonl")

    async def day(addresses: Addresses) -> None:
        key, spans = addresses.api_key or "", home / "spans"
        raise Stop(await play_sample_day(addresses.gateway, key, spans, console))

    try:
        asyncio.run(run_supervisor(settings, day, Quiet()))
    except Stop as stop:
        if stop.shown:
            assert isinstance(console.file, io.StringIO)
            return console.file.getvalue()
    sys.exit("the sample day did not show what it should")


def chosen(day: str) -> list[Text]:
    """The lines of the scenes to show."""
    scene, count, lines = "", 0, []
    for line in Text.from_ansi(day).split("\n"):
        if begun := re.match(r"(\d)  \w.* ─+$", line.plain.rstrip()):
            scene, count = begun[1], 0
        count += 1
        if count <= SCENES.get(scene, 0):
            lines.append(line)
        elif count == SCENES.get(scene, 0) + 1 and scene in SCENES:
            lines += [Text("   ...", style="dim"), Text("")]
    return lines


def draw(lines: list[Text]) -> str:
    """The lines as a terminal's picture. Each word has a position, so columns stay in line."""
    prompt = Text.from_markup("[green]$[/] make demo")
    shown = [prompt, Text(""), *lines]
    width = round(2 * MARGIN + WIDTH * CELL)
    height = TOP + LINE * len(shown) + MARGIN
    lights = ((20, "#ff5f57"), (40, "#febc2e"), (60, "#28c840"))
    body = [
        element("rect", width=width, height=height, rx=8, fill=BACK),
        *(element("circle", cx=x, cy=18, r=6, fill=colour) for x, colour in lights),
    ]
    console = Console(width=WIDTH, color_system="truecolor", file=io.StringIO())
    for row, line in enumerate(shown):
        column = 0
        for segment in line.render(console):
            for word in re.finditer(r"\S+", segment.text):
                x = round(MARGIN + (column + word.start()) * CELL, 2)
                y = TOP + LINE * row + SIZE
                body.append(text(word[0], x, y, SIZE, **_appearance(segment.style)))
            column += len(segment.text)
    return document(width, height, "Some of what make demo prints", MONO, body)


def _appearance(style: Style | None) -> dict[str, Any]:
    """The attributes of a style: its colour and its weight."""
    if style is None:
        return {"fill": INK}
    colour = style.color.get_truecolor(SVG_EXPORT_THEME).hex if style.color else INK
    weight = {"font_weight": "bold"} if style.bold else {}
    return {"fill": DIM if style.dim else colour, **weight}


def main() -> None:
    home = Path(tempfile.mkdtemp(prefix="reverie-picture-"))
    home.chmod(0o711)
    try:
        PICTURE.write_text(draw(chosen(printed(home))), "utf-8")
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
