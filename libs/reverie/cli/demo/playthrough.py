"""The state of one playthrough, and how it prints: a heading for each scene."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from reverie.cli.demo.gateway import SampleDayGateway, require
from reverie.cli.demo.story import SampleQuestion, SampleStory
from reverie.contracts.recall import RecallHit, RecallRequest, RecallResponse

WIDTH = 80
RECALL_LIMIT = 3


@dataclass
class Playthrough:
    """One playing: where it happens, and what has been made so far."""

    gateway: SampleDayGateway
    console: Console
    story: SampleStory
    project: str
    sessions: dict[str, UUID] = field(default_factory=dict)
    notes: dict[str, UUID] = field(default_factory=dict)
    turn_labels: dict[UUID, str] = field(default_factory=dict)
    traces: dict[str, str] = field(default_factory=dict)
    scene: int = 0

    @property
    def scope(self) -> str:
        return f"project/{self.project}"

    @property
    def width(self) -> int:
        return min(self.console.width, WIDTH)

    def print_heading(self, title: str) -> None:
        self.scene += 1
        rule = Rule(f"[bold]{self.scene}[/]  {title}", align="left", style="dim")
        self.console.print()
        self.console.print(rule, width=self.width, soft_wrap=False)

    def print_text(self, text: str | Text) -> None:
        line = Text.from_markup(text) if isinstance(text, str) else text
        self.print_block(line)

    def print_block(self, content: RenderableType, indent: int = 3) -> None:
        self.console.print(
            Padding(content, (0, 0, 0, indent)), width=self.width, highlight=False, soft_wrap=False
        )


def create_grid(*ratios: int) -> Table:
    """A borderless table whose columns wrap; a ratio of 0 is a column as narrow as can be."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for ratio in ratios:
        table.add_column(ratio=ratio or None, no_wrap=not ratio)
    return table


def excerpt(text: str, lines: int, limit: int) -> Text:
    """The beginning of a text: so many lines, each cut at `limit` characters."""
    all_lines = text.strip().splitlines()
    excerpt_lines = [one_line(line, limit) for line in all_lines[:lines]]
    omitted = len(all_lines) - len(excerpt_lines)
    return Text(
        "\n".join([*excerpt_lines, f"… and {omitted} more lines"] if omitted else excerpt_lines)
    )


def one_line(text: str, limit: int) -> str:
    """The text without line breaks, cut at `limit` characters."""
    plain = " ".join(text.split())
    return plain if len(plain) <= limit else plain[: limit - 1].rstrip() + "…"


async def recall_question(day: Playthrough, question: str) -> RecallResponse:
    """What the project's memory says to a question."""
    body = RecallRequest(query=question, scopes=[day.scope], limit=RECALL_LIMIT)
    return await day.gateway.post("/v1/recall", body, RecallResponse)


async def find_answer(day: Playthrough, question: SampleQuestion) -> RecallHit:
    """The first of the top memories that holds the answer. Raises `Unshown` without one."""
    response = await recall_question(day, question.ask)
    hits = [
        memory for memory in response.memories if question.expect.lower() in memory.content.lower()
    ]
    require(
        bool(hits),
        f"{question.ask!r} should find a memory that says {question.expect!r}; "
        f"found were {[one_line(memory.content, 60) for memory in response.memories]}",
    )
    return hits[0]


def print_answer(day: Playthrough, question: SampleQuestion, hit: RecallHit, source: str) -> None:
    """A question, what answered it, and by which arms it was found at what rank."""
    arms = ", ".join(f"{arm} #{rank}" for arm, rank in sorted(hit.arms.items())) or "no arm named"
    day.print_text(Text.assemble(("? ", "cyan"), (question.ask, "bold")))
    day.print_block(Text(one_line(hit.snippet or hit.content, 200)), indent=5)
    facts = f"{hit.kind}, {source}; by {arms}; {day.gateway.elapsed_ms:.0f} ms"
    day.print_block(Text(facts, style="dim"), indent=5)
