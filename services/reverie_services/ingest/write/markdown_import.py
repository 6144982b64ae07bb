"""Imports an edited `memory.md`: each difference from the stored scope is a change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from reverie.contracts.memories import RememberRequest
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Conflict, InvalidInput, ReverieError
from reverie.domain.core.kinds import parse_kind
from reverie.domain.core.memory import Memory, WriteOutcome, hash_content
from reverie.domain.formats.memory_md import (
    MemoryFile,
    MemorySegment,
    build_segment,
    most_frequent_words,
    parse_memory_file,
)
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.text.characters import is_blank
from reverie.domain.text.index_terms import memory_index_text
from reverie.runtime.http.calls import unlimited
from reverie.runtime.http.validation import parse_value
from reverie.runtime.observability.tracing import inject_headers
from reverie.store.memories.edits import MemoryChange
from reverie_services.ingest.dependencies import ImportDependencies
from reverie_services.ingest.write.jsonl_import import ImportTally
from reverie_services.ingest.write.preparation import check_size, prepare_memory

TextIdentity = tuple[str, str | None]
"""The hash of a content, and its key: the same text under two keys is two memories."""


class ScopeSnapshot:
    """The active memories of a scope; in a dry run, with the changes so far."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._by_id = {build_segment(item).id: item for item in memories}
        self._by_text = {(item.content_hash, item.key): item for item in memories}
        self._by_hash = {item.content_hash: item for item in memories}
        self._text_by_id: dict[UUID, TextIdentity] = {
            item.id: (item.content_hash, item.key) for item in memories
        }
        self._id_by_text = {text: memory for memory, text in self._text_by_id.items()}
        self._id_by_key = {item.key: item.id for item in memories if item.key}

    def find(self, segment: MemorySegment) -> Memory | None:
        """The memory of a segment, by its id, else by its text; without a key under any."""
        text_hash = hash_content(segment.text)
        by_text = self._by_text.get((text_hash, segment.key))
        by_id = self._by_id.get(segment.id) if segment.id else None
        return by_id or by_text or (None if segment.key else self._by_hash.get(text_hash))

    def contains(self, text: TextIdentity) -> bool:
        """Returns whether a memory has exactly this text."""
        return text in self._id_by_text

    def put(self, memory_id: UUID, text: TextIdentity) -> None:
        """Sets the memory's content. Raises `Conflict` if another memory has its text or key."""
        key = text[1]
        holder = self._id_by_text.get(text) or self._id_by_key.get(key or "")
        if holder not in {None, memory_id}:
            raise Conflict(f"the active memory {holder} has this content or key already")
        previous = self._text_by_id.get(memory_id)
        if previous:
            del self._id_by_text[previous]
            self._id_by_key.pop(previous[1] or "", None)
        self._text_by_id[memory_id], self._id_by_text[text] = text, memory_id
        if key:
            self._id_by_key[key] = memory_id


EDIT_REASON = "edited in memory.md"
MAX_PAST_VERSIONS = 100
"""Versions whose words are known again as those that a file was given."""


@dataclass(frozen=True)
class MarkdownImport:
    """One file on its way in."""

    deps: ImportDependencies
    principal: Principal
    redactor: Redactor
    scope: str
    strategy: str
    tally: ImportTally
    file: str | None = None
    written_scope: str | None = None
    """The scope as it was written, with the names that people gave it."""
    charge_quota: Callable[[int], Awaitable[None]] = unlimited
    """Counts the memories that are made."""

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing may be written."""
        return self.tally.result.dry_run


async def import_markdown(job: MarkdownImport, text: str) -> None:
    """Applies a file to its scope. Raises `Forbidden` if the key may not write it."""
    job.principal.check_write(job.scope)
    parsed = parse_memory_file(text)
    memories, summary = await job.deps.scope_notes.load_scope(job.principal, job.scope)
    existing = ScopeSnapshot(memories)
    unmatched_ids = [item.id for _, item in parsed.segments if item.id and not existing.find(item)]
    forgotten_ids = await job.deps.scope_notes.find_forgotten(
        job.principal, job.scope, unmatched_ids
    )
    matched_ids: set[UUID] = set()
    for line, segment in parsed.segments:
        memory = existing.find(segment)
        if memory is not None:
            matched_ids.add(memory.id)
        try:
            outcome = await _import_segment(job, segment, memory, existing, forgotten_ids)
            job.tally.count_outcome(outcome)
        except ReverieError as error:
            job.tally.add_refusal(line, str(error), job.file)
    if job.strategy == "replace":
        for memory in memories:
            if memory.id not in matched_ids:
                if not job.is_dry_run:
                    fields = {"status": "deleted"}
                    reason = "removed from memory.md"
                    await _apply_change(job, memory.id, fields, reason, "forgotten")
                job.tally.count_outcome("forgotten")
    await _import_summary(job, parsed, summary)


async def _import_segment(
    job: MarkdownImport,
    segment: MemorySegment,
    memory: Memory | None,
    existing: ScopeSnapshot,
    forgotten_ids: set[str],
) -> str:
    """Imports a segment and returns its outcome. Raises `ReverieError` if it is refused."""
    if is_blank(segment.text):
        raise InvalidInput("content", "the segment is empty")
    check_size("content", segment.text, job.deps.settings.content_limit, "content_limit")
    fields = {"content": segment.text, "key": segment.key, "keywords": list(segment.keywords or ())}
    for name, value in fields.items():
        if job.redactor.redact_value({name: value}).count:
            raise InvalidInput(name, "holds a secret")
    if memory is not None:
        return await _update_memory(job, segment, memory, existing)
    if segment.id in forgotten_ids:
        return "skipped"
    return await _create_memory(job, segment, existing)


async def _create_memory(
    job: MarkdownImport, segment: MemorySegment, existing: ScopeSnapshot
) -> str:
    fields = {
        "content": segment.text,
        "scope": job.written_scope or job.scope,
        "kind": segment.kind,
        "key": segment.key,
        "tags": list(segment.keywords or ()),
        "confidence": 0.8 if segment.priority is None else segment.priority,
        "pinned": bool(segment.pinned),
    }
    body = parse_value(RememberRequest, fields)
    prepared = prepare_memory(body, job.principal, job.redactor, job.deps.settings)
    if job.is_dry_run:
        text = (prepared.memory.content_hash, prepared.memory.key)
        if existing.contains(text):
            return "skipped"
        existing.put(prepared.memory.id, text)
        return "created"
    await job.charge_quota(1)
    [written] = await job.deps.memories.remember(
        job.principal,
        [prepared.memory],
        inject_headers(),
        secrets_epoch=job.redactor.secrets.epoch,
    )
    if isinstance(written, ReverieError):
        raise written
    return "skipped" if written.outcome is WriteOutcome.DUPLICATE else "created"


async def _update_memory(
    job: MarkdownImport, segment: MemorySegment, memory: Memory, existing: ScopeSnapshot
) -> str:
    if job.strategy == "skip":
        return "skipped"
    fields = _find_differences(segment, memory)
    if "tags" in fields:
        versions = await job.deps.edits.history(
            job.principal, memory.id, memory.version, MAX_PAST_VERSIONS
        )
        fields = _find_differences(segment, memory, [version.content for version in versions])
    if not fields:
        return "skipped"
    if job.is_dry_run:
        text = hash_content(segment.text) if "content" in fields else memory.content_hash
        existing.put(memory.id, (text, fields.get("key", memory.key)))
    else:
        await _apply_change(job, memory.id, fields, EDIT_REASON, "edited")
    return "updated"


def _find_differences(
    segment: MemorySegment, memory: Memory, past_texts: Sequence[str] = ()
) -> dict[str, Any]:
    """Finds the columns in which the file differs from the stored memory.

    `past_texts`: earlier texts of the memory.
    """
    rendered, fields = build_segment(memory), dict[str, Any]()
    if segment.text != rendered.text:
        fields |= {
            "content": segment.text,
            "hash": "\\x" + hash_content(segment.text),
        }
    # Keywords that were made from the words are no tags; only those that a person chose are.
    generated = [set(most_frequent_words(text)) for text in (memory.content, *past_texts)]
    keywords = set(segment.keywords or ())
    if segment.keywords is not None and keywords not in (set(rendered.keywords or ()), *generated):
        fields["tags"] = sorted(set(segment.keywords))
    if segment.priority is not None and segment.priority != rendered.priority:
        fields["confidence"] = segment.priority
    if (segment.pinned or False) != memory.pinned:
        fields["pinned"] = bool(segment.pinned)
    if segment.kind and parse_kind(segment.kind) is not memory.kind:
        fields["kind"] = parse_kind(segment.kind).value
    if segment.key is not None and segment.key != memory.key:
        fields["key"] = segment.key
    if fields.keys() & {"content", "tags", "key"}:
        tags = fields.get("tags", memory.tags)
        key = fields.get("key", memory.key)
        fields["index_text"] = memory_index_text(key, segment.text, tags)
    return fields


async def _apply_change(
    job: MarkdownImport, memory_id: UUID, fields: Mapping[str, Any], reason: str, event: str
) -> None:
    change = MemoryChange(fields=fields, reason=reason, event=event)
    await job.deps.edits.change(job.principal, memory_id, change, inject_headers())


async def _import_summary(job: MarkdownImport, parsed: MemoryFile, existing: str | None) -> None:
    """Imports the file's summary, if it differs from the stored one."""
    text = parsed.summary
    if not text or text == (existing or "").strip() or (existing and job.strategy == "skip"):
        return
    if job.redactor.redact(text).count:
        job.tally.add_refusal(1, "summary: holds a secret", job.file)
        return
    now = datetime.now(UTC).isoformat()
    tokens = job.deps.model_manager.counter.count(text)
    row = {"scope": job.scope, "content": text, "tokens": tokens, "updated": now, "version": 1}
    async with job.deps.export_import.open_import(
        job.principal, "replace", job.is_dry_run
    ) as session:
        [outcome] = await session.write_batch("summary", [row], {})
    job.tally.count_outcome(outcome.outcome)
