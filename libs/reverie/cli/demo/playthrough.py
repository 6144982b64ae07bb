"""The state of one playthrough of the sample day: its calls, its checks, and how it prints."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar, cast
from uuid import UUID

from pydantic import BaseModel
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_delay, wait_fixed

from reverie.cli.app.output import one_line
from reverie.cli.demo.story import SampleQuestion, SampleStory
from reverie.client import AsyncReverie
from reverie.contracts.recall import RecallHit, RecallRequest, RecallResponse
from reverie.domain.core.errors import ReverieError

Response = TypeVar("Response", bound=BaseModel)
Result = TypeVar("Result")

WIDTH = 80
RECALL_LIMIT = 3
PAUSE_SECONDS = 0.2


@dataclass
class SampleDayError(ReverieError):
    """{reason}"""

    code: ClassVar[str] = "internal"
    reason: str


@dataclass
class Playthrough:
    """One playthrough: the gateway, the project, and what was stored so far.

    `elapsed_ms` is the duration of the last call; `traces` holds a trace id for each followed call.
    """

    client: AsyncReverie
    console: Console
    story: SampleStory
    project: str
    sessions: dict[str, UUID] = field(default_factory=dict)
    notes: dict[str, UUID] = field(default_factory=dict)
    turn_labels: dict[UUID, str] = field(default_factory=dict)
    traces: dict[str, str] = field(default_factory=dict)
    scene: int = 0
    elapsed_ms: float = 0.0

    @property
    def scope(self) -> str:
        return f"project/{self.project}"

    @property
    def width(self) -> int:
        return min(self.console.width, WIDTH)

    async def get(self, path: str, kind: type[Response], **query: str) -> Response:
        """The response to a read. Raises `ReverieError`."""
        return await self.client.request(kind, "GET", path, query=query)

    async def post(
        self, path: str, body: BaseModel, kind: type[Response], follow: str | None = None
    ) -> Response:
        """The response to a call, which is timed. The first call named `follow` begins a trace."""
        headers = {}
        if follow is not None and follow not in self.traces:
            self.traces[follow] = secrets.token_hex(16)
            headers["traceparent"] = f"00-{self.traces[follow]}-{secrets.token_hex(8)}-01"
        start = time.perf_counter()
        response = await self.client.request(kind, "POST", path, body=body, headers=headers)
        self.elapsed_ms = (time.perf_counter() - start) * 1000
        return response

    async def recall(self, question: str) -> RecallResponse:
        """The memories of the project that answer a question."""
        body = RecallRequest(query=question, scopes=[self.scope], limit=RECALL_LIMIT)
        return await self.post("/v1/recall", body, RecallResponse)

    def print_heading(self, title: str) -> None:
        self.scene += 1
        rule = Rule(f"[bold]{self.scene}[/]  {title}", align="left", style="dim")
        self.console.print()
        self.console.print(rule, width=self.width, soft_wrap=False)

    def print_text(self, text: str | Text) -> None:
        self.print_block(Text.from_markup(text) if isinstance(text, str) else text)

    def print_block(self, content: RenderableType, indent: int = 3) -> None:
        self.console.print(
            Padding(content, (0, 0, 0, indent)), width=self.width, highlight=False, soft_wrap=False
        )


async def wait_until(
    check: Callable[[], Awaitable[Result | None]], timeout_seconds: float, missing: str
) -> Result:
    """The first result of `check`. Raises `SampleDayError(missing)` after the timeout."""
    retrying = AsyncRetrying(
        stop=stop_after_delay(timeout_seconds),
        wait=wait_fixed(PAUSE_SECONDS),
        retry=retry_if_result(lambda result: result is None),
    )
    try:
        return cast("Result", await retrying(check))
    except RetryError:
        raise SampleDayError(f"{missing} (waited {timeout_seconds:.0f} s)") from None


def require(condition: bool, reason: str) -> None:
    """Raises `SampleDayError(reason)` if the condition is false."""
    if not condition:
        raise SampleDayError(reason)


def create_grid(*ratios: int) -> Table:
    """Returns a borderless table whose columns wrap; a column of ratio 0 is as narrow as its
    content."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for ratio in ratios:
        table.add_column(ratio=ratio or None, no_wrap=not ratio)
    return table


async def find_answer(day: Playthrough, question: SampleQuestion) -> RecallHit:
    """The first recalled memory that contains the answer. Raises `SampleDayError` without one."""
    memories = (await day.recall(question.ask)).memories
    for memory in memories:
        if question.expect.lower() in memory.content.lower():
            return memory
    raise SampleDayError(
        f"{question.ask!r} should find a memory that says {question.expect!r}; "
        f"found were {[one_line(memory.content, 60) for memory in memories]}"
    )


async def find_sure_answer(
    day: Playthrough, question: SampleQuestion, timeout_seconds: float
) -> RecallHit:
    """The same, once the question counts as answered: words alone, without a vector, may not do."""

    async def is_answered() -> bool | None:
        return (await day.recall(question.ask)).answered or None

    missing = f"nothing answers {question.ask!r} for sure"
    await wait_until(is_answered, timeout_seconds, missing)
    return await find_answer(day, question)


def print_answer(day: Playthrough, question: SampleQuestion, hit: RecallHit, source: str) -> None:
    """Prints a question, the memory that answers it, and its rank by retriever."""
    arms = ", ".join(f"{arm} #{rank}" for arm, rank in sorted(hit.arms.items())) or "no arm named"
    day.print_text(Text.assemble(("? ", "cyan"), (question.ask, "bold")))
    day.print_block(Text(one_line(hit.snippet or hit.content, 200)), indent=5)
    relevance = "" if hit.relevance is None else f"relevance {hit.relevance:.2f}; "
    facts = f"{hit.kind}, {source}; {relevance}by {arms}; {day.elapsed_ms:.0f} ms"
    day.print_block(Text(facts, style="dim"), indent=5)
