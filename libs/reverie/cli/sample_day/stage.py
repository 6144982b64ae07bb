"""The state of one playing, and how it speaks: eighty columns, a heading for each scene."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from reverie.cli.sample_day.door import Door, require
from reverie.cli.sample_day.story import Question, Story
from reverie.contracts.recall import Recall, RecallAnswer, Recalled

WIDTH = 80
TOP = 3


@dataclass
class Day:
    """One playing: where it happens, and what has been made so far."""

    door: Door
    console: Console
    story: Story
    project: str
    sessions: dict[str, UUID] = field(default_factory=dict)
    notes: dict[str, UUID] = field(default_factory=dict)
    told_by: dict[UUID, str] = field(default_factory=dict)
    traces: dict[str, str] = field(default_factory=dict)
    scene: int = 0

    @property
    def scope(self) -> str:
        return f"project/{self.project}"

    @property
    def width(self) -> int:
        return min(self.console.width, WIDTH)

    def heading(self, title: str) -> None:
        self.scene += 1
        rule = Rule(f"[bold]{self.scene}[/]  {title}", align="left", style="dim")
        self.console.print()
        self.console.print(rule, width=self.width, soft_wrap=False)

    def say(self, text: str | Text) -> None:
        line = Text.from_markup(text) if isinstance(text, str) else text
        self.show(line)

    def show(self, what: RenderableType, indent: int = 3) -> None:
        self.console.print(
            Padding(what, (0, 0, 0, indent)), width=self.width, highlight=False, soft_wrap=False
        )


def rows(*ratios: int) -> Table:
    """A borderless table whose columns wrap; a ratio of 0 is a column as narrow as can be."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for ratio in ratios:
        table.add_column(ratio=ratio or None, no_wrap=not ratio)
    return table


def page(text: str, lines: int, limit: int) -> Text:
    """The beginning of a text: so many lines, each cut at `limit` characters."""
    all_lines = text.strip().splitlines()
    shown = [one_line(line, limit) for line in all_lines[:lines]]
    more = len(all_lines) - len(shown)
    return Text("\n".join([*shown, f"… and {more} more lines"] if more else shown))


def one_line(text: str, limit: int) -> str:
    """The text without line breaks, cut at `limit` characters."""
    plain = " ".join(text.split())
    return plain if len(plain) <= limit else plain[: limit - 1].rstrip() + "…"


async def ask(day: Day, question: str) -> RecallAnswer:
    """What the project's memory says to a question."""
    body = Recall(query=question, scopes=[day.scope], limit=TOP)
    return await day.door.post("/v1/recall", body, RecallAnswer)


async def answer_to(day: Day, question: Question) -> Recalled:
    """The first of the top memories that holds the answer. Raises `Unshown` without one."""
    found = await ask(day, question.ask)
    hits = [m for m in found.memories if question.expect.lower() in m.content.lower()]
    require(
        bool(hits),
        f"{question.ask!r} should find a memory that says {question.expect!r}; "
        f"found were {[one_line(m.content, 60) for m in found.memories]}",
    )
    return hits[0]


def show_answer(day: Day, question: Question, hit: Recalled, source: str) -> None:
    """A question, what answered it, and by which arms it was found at what rank."""
    arms = ", ".join(f"{arm} #{rank}" for arm, rank in sorted(hit.arms.items())) or "no arm named"
    day.say(Text.assemble(("? ", "cyan"), (question.ask, "bold")))
    day.show(Text(one_line(hit.snippet or hit.content, 200)), indent=5)
    facts = f"{hit.kind}, {source}; by {arms}; {day.door.took_ms:.0f} ms"
    day.show(Text(facts, style="dim"), indent=5)
