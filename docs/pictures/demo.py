"""Plays the sample day on a home of its own, and draws some of its scenes as demo.svg.

Run from the root of the project: `.venv/bin/python docs/pictures/demo.py`
"""

from __future__ import annotations

import asyncio
import io
import re
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from reverie.cli.demo.scenes import play_sample_day
from reverie.cli.operate.up_display import JsonUpDisplay
from reverie.embedded.reporting import Addresses
from reverie.embedded.supervisor import run_supervisor
from reverie.runtime.settings.settings import Settings

PICTURE = Path(__file__).with_name("demo.svg")
WIDTH = 80
SCENES = {"2": 20, "3": 20, "4": 12, "6": 24}
"""The scenes shown, and how many lines of each; what is left out is said by an ellipsis."""
FRAME = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img"
  aria-label="Some of what make demo prints">
<style>
.{unique_id}-matrix {{
  font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; white-space: pre;
}}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


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
    """The lines as a terminal's picture."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH + 1, color_system="truecolor")
    console.print("[green]$[/] make demo\n")
    for line in lines:
        console.print(line, no_wrap=True, overflow="crop")
    return console.export_svg(title="make demo", code_format=FRAME, unique_id="demo")


def main() -> None:
    home = Path(tempfile.mkdtemp(prefix="reverie-picture-"))
    home.chmod(0o711)
    try:
        PICTURE.write_text(draw(chosen(printed(home))), "utf-8")
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
