"""An edited `memory.md` taken in: what differs from what stands is applied as a change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from reverie.contracts.memories import Remember
from reverie.domain.access import Principal
from reverie.domain.blank import is_blank
from reverie.domain.errors import Invalid, ReverieError
from reverie.domain.kinds import parse_kind
from reverie.domain.memory import Memory, NewMemory, Outcome, content_hash
from reverie.domain.redaction import redact, redact_value
from reverie.domain.said import memory_words
from reverie.domain.segments import MemoryFile, Segment, parse_file, segment_of, top_words
from reverie.ingest.accept import accept, check_size
from reverie.ingest.carry_in import Tally
from reverie.ingest.markdown_standing import Standing
from reverie.ingest.parts import Parts
from reverie.runtime.body import parse_value
from reverie.runtime.calls import free
from reverie.runtime.telemetry import inject_headers
from reverie.store.edits import Change

WHY = "edited in memory.md"
PAST = 100
"""Versions whose words are known again as those that a file was given."""


@dataclass(frozen=True)
class Intake:
    """One file on its way in."""

    parts: Parts
    who: Principal
    scope: str
    strategy: str
    tally: Tally
    file: str | None = None
    named: str | None = None
    """The scope as it was written, with the names that people gave it."""
    spend: Callable[[int], Awaitable[None]] = free
    """Counts the memories that are made."""

    @property
    def dry(self) -> bool:
        """Whether nothing may be written."""
        return self.tally.answer.dry_run


async def take_markdown(intake: Intake, text: str) -> None:
    """Applies a file to its scope. Raises `Forbidden` where the key may not write it."""
    intake.who.check_write(intake.scope)
    parsed = parse_file(text)
    memories, summary = await intake.parts.notes.standing(intake.who, intake.scope)
    standing = Standing(memories)
    shorts = [one.id for _, one in parsed.segments if one.id and not standing.find(one)]
    gone = await intake.parts.notes.forgotten(intake.who, intake.scope, shorts)
    kept: set[UUID] = set()
    for line, segment in parsed.segments:
        known = standing.find(segment)
        if known:
            kept.add(known.id)
        await _judged(intake, (line, segment), standing, gone)
    if intake.strategy == "replace":
        await _forget(intake, [one for one in memories if one.id not in kept])
    await _summary(intake, parsed, summary)


async def _judged(
    intake: Intake, numbered: tuple[int, Segment], standing: Standing, gone: set[str]
) -> None:
    """One segment: nothing of it is stored where it is refused."""
    line, segment = numbered
    known = standing.find(segment)
    try:
        _check(segment, intake.parts.settings.content_limit)
        if segment.id in gone and known is None:
            intake.tally.count("skipped")
        elif known is None:
            intake.tally.count(await _new(intake, segment, standing))
        else:
            intake.tally.count(await _edit(intake, segment, known, standing))
    except ReverieError as error:
        intake.tally.refuse(line, str(error), intake.file)


def _check(segment: Segment, limit: int) -> None:
    if is_blank(segment.text):
        raise Invalid("content", "the segment is empty")
    check_size("content", segment.text, limit, "content_limit")
    said = {"content": segment.text, "key": segment.key, "keywords": list(segment.keywords or ())}
    for name, value in said.items():
        if redact_value({name: value}).count:
            raise Invalid(name, "holds a secret")


async def _new(intake: Intake, segment: Segment, standing: Standing) -> str:
    given = {
        "content": segment.text,
        "scope": intake.named or intake.scope,
        "kind": segment.kind,
        "key": segment.key,
        "tags": list(segment.keywords or ()),
        "confidence": 0.8 if segment.priority is None else segment.priority,
        "pinned": bool(segment.pinned),
    }
    body = parse_value(Remember, given)
    accepted = accept(body, intake.who, intake.parts.settings)
    if intake.dry:
        return _tried(accepted.memory, standing)
    await intake.spend(1)
    [written] = await intake.parts.memories.remember(
        intake.who, [accepted.memory], inject_headers()
    )
    if isinstance(written, ReverieError):
        raise written
    return "skipped" if written.outcome is Outcome.DUPLICATE else "created"


def _tried(new: NewMemory, standing: Standing) -> str:
    if standing.says((new.content_hash, new.key)):
        return "skipped"
    standing.put(new.id, (new.content_hash, new.key))
    return "created"


async def _edit(intake: Intake, segment: Segment, known: Memory, standing: Standing) -> str:
    if intake.strategy == "skip":
        return "skipped"
    fields = _differences(segment, known)
    if "tags" in fields:
        past = await intake.parts.edits.history(intake.who, known.id, known.version, PAST)
        fields = _differences(segment, known, [version.content for version in past])
    if not fields:
        return "skipped"
    if intake.dry:
        text = content_hash(segment.text) if "content" in fields else known.content_hash
        standing.put(known.id, (text, fields.get("key", known.key)))
    else:
        await _change(intake, known.id, fields, WHY, "edited")
    return "updated"


def _differences(segment: Segment, known: Memory, past: Sequence[str] = ()) -> dict[str, Any]:
    """The columns that the file says otherwise than what stands; `past`: what its text was."""
    shown, fields = segment_of(known), dict[str, Any]()
    if segment.text != shown.text:
        fields |= {
            "content": segment.text,
            "hash": "\\x" + content_hash(segment.text),
        }
    # Keywords that were made from the words are no tags; only those that a person chose are.
    made = [set(top_words(text)) for text in (known.content, *past)]
    told = set(segment.keywords or ())
    if segment.keywords is not None and told not in (set(shown.keywords or ()), *made):
        fields["tags"] = sorted(set(segment.keywords))
    if segment.priority is not None and segment.priority != shown.priority:
        fields["confidence"] = segment.priority
    if (segment.pinned or False) != known.pinned:
        fields["pinned"] = bool(segment.pinned)
    if segment.kind and parse_kind(segment.kind) is not known.kind:
        fields["kind"] = parse_kind(segment.kind).value
    if segment.key is not None and segment.key != known.key:
        fields["key"] = segment.key
    if fields.keys() & {"content", "tags", "key"}:
        tags = fields.get("tags", known.tags)
        key = fields.get("key", known.key)
        fields["index_text"] = memory_words(key, segment.text, tags)
    return fields


async def _change(
    intake: Intake, memory: UUID, fields: Mapping[str, Any], why: str, event: str
) -> None:
    change = Change(fields=fields, why=why, event=event)
    await intake.parts.edits.change(intake.who, memory, change, inject_headers())


async def _forget(intake: Intake, removed: list[Memory]) -> None:
    for memory in removed:
        if not intake.dry:
            fields = {"status": "deleted"}
            await _change(intake, memory.id, fields, "removed from memory.md", "forgotten")
        intake.tally.count("forgotten")


async def _summary(intake: Intake, parsed: MemoryFile, standing: str | None) -> None:
    """The file's summary, where it says another than stands."""
    text = parsed.summary
    if not text or text == (standing or "").strip() or (standing and intake.strategy == "skip"):
        return
    if redact(text).count:
        intake.tally.refuse(1, "summary: holds a secret", intake.file)
        return
    now = datetime.now(UTC).isoformat()
    tokens = intake.parts.model.counter.count(text)
    row = {"scope": intake.scope, "content": text, "tokens": tokens, "updated": now, "version": 1}
    async with intake.parts.carry.landing(intake.who, "replace", intake.dry) as landing:
        [landed] = await landing.land("summary", [row], {})
    intake.tally.count(landed.outcome)
