"""Imports an edited `memory.md`: each difference from the stored scope is a change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from reverie.contracts.events import BULK_HEADERS
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Conflict, ReverieError
from reverie.domain.core.kinds import KIND_POLICIES, parse_kind
from reverie.domain.core.memory import Memory, WriteOutcome, hash_content
from reverie.domain.formats.memory_md import (
    MemoryFile,
    MemorySegment,
    build_segment,
    most_frequent_words,
)
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.text.index_terms import memory_index_text
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.memories.edits import MemoryChange, remove_record
from reverie_services.ingest.dependencies import ImportDependencies
from reverie_services.ingest.write.import_problems import ImportProblems
from reverie_services.ingest.write.jsonl_import import ImportTally
from reverie_services.ingest.write.markdown_files import (
    CheckedFile,
    MarkdownBody,
    MarkdownRules,
    build_request,
    check_body,
    is_reserved,
    iterate_files,
)
from reverie_services.ingest.write.prepared_records import parse_writable_kind, prepare_memory

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
class MarkdownContext:
    """An import of files: who imports, how, and what came of it so far.

    `charge_quota` counts the memories that are made.
    """

    deps: ImportDependencies
    principal: Principal
    strategy: str
    tally: ImportTally
    charge_quota: Callable[[int], Awaitable[None]]


@dataclass(frozen=True)
class MarkdownImport(MarkdownContext):
    """One file on its way in."""

    redactor: Redactor
    file: CheckedFile

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing may be written."""
        return self.tally.result.dry_run


async def import_markdown_files(body: MarkdownBody, context: MarkdownContext) -> None:
    """Checks all files, in a thread, and applies each to its scope if all are sound.

    Raises `RefusedImport`, `InvalidInput` or `MalformedInput`; nothing was stored then.
    """
    rules = MarkdownRules(
        context.principal, await _load_redactor(context), context.deps.settings.content_limit
    )
    await asyncio.to_thread(check_body, body, rules)
    files = iterate_files(body, rules, ImportProblems())
    while file := await asyncio.to_thread(next, files, None):
        # A secret that came to the vault meanwhile is redacted where the memory is prepared.
        redactor = await _load_redactor(context)
        context.tally.result.redactions += file.redactions
        await _apply_file(MarkdownImport(**vars(context), redactor=redactor, file=file))


async def _load_redactor(context: MarkdownContext) -> Redactor:
    redactor = await context.deps.load_redactor(context.principal.tenant)
    return redactor.naming(context.principal.may_read)


async def _apply_file(job: MarkdownImport) -> None:
    parsed, scope = job.file.content, job.file.scope
    memories, summary = await job.deps.scope_notes.load_scope(job.principal, scope)
    existing = await asyncio.to_thread(ScopeSnapshot, memories)
    unmatched_ids = [item.id for _, item in parsed.segments if item.id and not existing.find(item)]
    forgotten_ids = await job.deps.scope_notes.find_forgotten(job.principal, scope, unmatched_ids)
    matched_ids: set[UUID] = set()
    for line, segment in parsed.segments:
        # A dry run waits for nothing else, and other requests are answered meanwhile.
        await asyncio.sleep(0)
        memory = existing.find(segment)
        try:
            if memory is not None:
                matched_ids.add(memory.id)
                outcome = await _update_memory(job, segment, memory, existing)
            elif segment.id in forgotten_ids:
                outcome = "skipped"
            else:
                outcome = await _create_memory(job, segment, existing)
            job.tally.count_outcome(outcome)
        except ReverieError as error:
            job.tally.add_refusal(line, str(error), job.file.name)
    if job.strategy == "replace":
        for memory in memories:
            if memory.id not in matched_ids:
                if not job.is_dry_run:
                    fields = {"status": "deleted"}
                    reason = "removed from memory.md"
                    await _apply_change(job, memory.id, fields, reason, "forgotten")
                job.tally.count_outcome("forgotten")
    await _import_summary(job, parsed, summary)


async def _create_memory(
    job: MarkdownImport, segment: MemorySegment, existing: ScopeSnapshot
) -> str:
    """Returns the outcome. Raises `ReverieError` if the segment is refused."""
    body = build_request(segment, job.file.written_scope)
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
        trace_headers() | BULK_HEADERS,
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
        kind = parse_writable_kind(segment.kind)
        fields |= {"kind": kind.value, "tier": KIND_POLICIES[kind].tier.value}
    if segment.key not in {None, memory.key} and not is_reserved(segment.key):
        fields["key"] = segment.key
    if fields.keys() & {"content", "tags", "key"}:
        tags = fields.get("tags", memory.tags)
        key = fields.get("key", memory.key)
        metadata: Mapping[str, Any] = memory.metadata
        if "content" in fields and "record" in metadata:
            metadata = fields["metadata"] = remove_record(metadata)
        fields["index_text"] = memory_index_text(key, segment.text, tags, metadata)
    return fields


async def _apply_change(
    job: MarkdownImport, memory_id: UUID, fields: Mapping[str, Any], reason: str, event: str
) -> None:
    change = MemoryChange(fields=fields, reason=reason, event=event)
    await job.deps.edits.change(job.principal, memory_id, change, trace_headers() | BULK_HEADERS)


async def _import_summary(job: MarkdownImport, parsed: MemoryFile, existing: str | None) -> None:
    """Imports the file's summary, if it differs from the stored one."""
    text = parsed.summary
    if not text or text == (existing or "").strip() or (existing and job.strategy == "skip"):
        return
    now = datetime.now(UTC).isoformat()
    tokens = job.deps.model_manager.counter.count(text)
    row = {"scope": job.file.scope, "content": text, "tokens": tokens, "updated": now, "version": 1}
    async with job.deps.export_import.open_import(
        job.principal, "replace", job.is_dry_run
    ) as session:
        [outcome] = await session.write_batch("summary", [row], {})
    job.tally.count_outcome(outcome.outcome)
