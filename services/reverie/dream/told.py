"""Segments by a language model: typed, held against the turns they cite, rules where it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import structlog
from pydantic import BaseModel, Field

from reverie.domain.about_files import MAX_FILES, worked, wrote
from reverie.domain.distil import MAX_TAGS, Distilled
from reverie.domain.drafts import MAX_CONTENT
from reverie.domain.grounding import gives_orders, is_grounded
from reverie.domain.kinds import Kind
from reverie.domain.known_secrets import Known, knowing
from reverie.domain.redaction import redact
from reverie.domain.slices import Slice
from reverie.domain.turns import TurnText
from reverie.dream.extract import Context, Extraction, Extractor
from reverie.inference.asking import Tally, Unanswered
from reverie.inference.fencing import fenced
from reverie.inference.language import LanguageModel
from reverie.inference.prompts import prompt

log = structlog.get_logger("reverie.dream")

MIN_CHARS = 200
"""A shorter slice is not worth a call."""

TURN_CHARS = 4_000
SHORTEST = 15
TOOLS_SAY = 0.4
"""The most that a memory may matter which tools alone say."""

_RULES_OF_USERS = frozenset({Kind.CONVENTION, Kind.PREFERENCE})

Told = Literal[
    "decision", "convention", "preference", "bug", "lesson", "spec", "task", "skill", "context"
]


class Segment(BaseModel):
    """One memory as the model words it, and the numbers of the turns that say so."""

    kind: Told
    content: str = Field(max_length=4_000)
    turns: list[int] = Field(max_length=200)
    priority: Annotated[float, Field(ge=0, le=1)] = 0.5
    keywords: list[str] = Field(default_factory=list, max_length=50)
    files: list[str] = Field(default_factory=list, max_length=100)


class Segments(BaseModel):
    """What is worth knowing later."""

    memories: list[Segment] = Field(max_length=60)


class ModelExtractor:
    """Asks a language model; what it does not answer, the rules do."""

    def __init__(
        self,
        model: LanguageModel,
        known_of: Callable[[int], Awaitable[Known]],
        rules: Extractor,
    ) -> None:
        self._model, self._known_of, self._rules = model, known_of, rules

    async def extract(self, part: Slice, context: Context) -> Extraction:
        """As the port says. Short slices are left to the rules."""
        if sum(len(turn.content) for turn in part.turns) < MIN_CHARS:
            return await self._rules.extract(part, context)
        tally = Tally()
        with knowing(await self._known_of(context.lease.tenant), lambda _: False):
            text = await asyncio.to_thread(_as_data, part.turns)
        task = prompt("distil")
        try:
            told = await self._model.ask(context.lease.tenant, task, text, Segments, tally)
        except Unanswered as error:
            made = await self._rules.extract(part, context)
            return Extraction(made.segments, made.by, f"llm: {error}", tally.calls, tally.tokens)
        by = f"{task.label} {self._model.name}"
        kept = await asyncio.to_thread(accepted, told.memories, part.turns, by)
        return Extraction(kept, task.label, None, tally.calls, tally.tokens)


def accepted(told: Sequence[Segment], turns: Sequence[TurnText], by: str = "") -> list[Distilled]:
    """The segments that hold against the turns they cite; the others are told in the log."""
    kept: list[Distilled] = []
    refused: list[str] = []
    for one in told:
        made = judged(one, turns)
        if isinstance(made, str):
            refused.append(made)
        else:
            kept.append(replace(made, by=by))
    if refused:
        log.info("segments_refused", reasons=refused)
    return kept


def judged(told: Segment, turns: Sequence[TurnText]) -> Distilled | str:
    """The memory, or why it is none. What it may be is said by who said it, not by the text."""
    if not told.turns:
        return "it cites nothing"
    if not all(1 <= n <= len(turns) for n in told.turns):
        return "it cites a turn that is not there"
    content = " ".join(told.content.split())
    if not SHORTEST <= len(content) <= MAX_CONTENT:
        return "it is too short or too long"
    if gives_orders(content):
        return "it speaks to a model"
    cited = [turns[n - 1] for n in sorted(set(told.turns))]
    if not is_grounded(content, "\n".join(turn.content for turn in cited)):
        return "the turns do not say it"
    roles = {turn.role for turn in cited}
    kind = Kind(told.kind)
    files = _files(told.files, cited)
    return Distilled(
        content=content,
        kind=Kind.CONTEXT if kind in _RULES_OF_USERS and "user" not in roles else kind,
        tags=_tags(told.keywords),
        priority=min(told.priority, TOOLS_SAY) if roles == {"tool"} else told.priority,
        files=files,
        turns=tuple(turn.id for turn in cited),
        at=cited[-1].at,
        wrote=wrote(files, worked(turns), cited[-1].at),
    )


def _tags(keywords: Sequence[str]) -> tuple[str, ...]:
    words = (" ".join(word.split())[:64] for word in keywords)
    return tuple(dict.fromkeys(word for word in words if word))[:MAX_TAGS]


def _files(named: Sequence[str], cited: Sequence[TurnText]) -> tuple[str, ...]:
    said = "\n".join(turn.content for turn in cited)
    return tuple(dict.fromkeys(file for file in named if file.strip() and file in said))[:MAX_FILES]


def _as_data(turns: Sequence[TurnText]) -> str:
    labels = (f"{turn.role} {turn.tool or ''}" for turn in turns)
    texts = (redact(turn.content[:TURN_CHARS]).text for turn in turns)
    return fenced(zip(labels, texts, strict=True))
