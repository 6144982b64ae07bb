"""Remembers what the messages of commits decide or explain."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from reverie.contracts.events import (
    BULK_HEADERS,
    OutgoingEvent,
    build_outgoing_event,
    memory_subject,
)
from reverie.contracts.memories.git import CommitBody, FileChange, GitChange
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import slugify
from reverie.domain.core.errors import ReverieError
from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import KIND_POLICIES
from reverie.domain.core.memory import NewMemory, hash_content
from reverie.domain.extraction.commit_records import extract_commit_record
from reverie.domain.staleness.commit_marks import COMMIT_KEY_PREFIX, COMMIT_SOURCE
from reverie.domain.text.index_terms import memory_index_text
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.memories.memories import MemoryStore
from reverie.store.staleness.git_changes import GitChangeStore, StoredCommitMemory

MAX_COMMIT_FILES = 64
MAX_COMMIT_RANGES = 64
"""Runs of lines of a file that a commit wrote; a file with more is remembered without lines."""
MAX_REMEMBERED_COMMITS = 1_000
"""Commits of one change that are remembered: those that come last."""
COMMIT_CONFIDENCE = 0.8


@dataclass(frozen=True)
class RememberedCommits:
    """The events to publish, and how many commits had something to remember but came too early."""

    events: list[OutgoingEvent] = field(default_factory=list)
    omitted: int = 0


async def remember_commits(
    memories: MemoryStore,
    changes: GitChangeStore,
    principal: Principal,
    change: GitChange,
    merge_request: CommitBody | None = None,
) -> RememberedCommits:
    """Remembers the records of a redacted change's commits.

    A commit has one memory, whatever branch it comes by and however often: its key is the commit's
    id. A reverted commit's memory is replaced by that of the commit that reverts it.
    `merge_request`: its title and text. They replace the message of its merge, unless the memory
    was edited or forgotten since, or they did so before.
    """
    project = f"project/{slugify(change.project)}"
    scope = project if change.is_on_main_branch else f"{project}/feature/{slugify(change.branch)}"
    built = await asyncio.to_thread(_build_commit_memories, scope, change, merge_request)
    omitted = max(0, len(built) - MAX_REMEMBERED_COMMITS)
    items = {(new.key, new.git["commit"]): new for new in built[omitted:] if new.key and new.git}
    if not items:
        return RememberedCommits()
    keys = sorted({key for key, _ in items})
    known = await changes.load_commit_memories(principal.tenant, scope, keys)
    reverted_keys = {_build_key(commit) for commit in change.commits if commit.reverts}
    headers = trace_headers() | BULK_HEADERS
    events: list[OutgoingEvent] = []
    new_items = [
        new
        for (key, sha), new in items.items()
        if key not in known
        or (key in reverted_keys and all(stored.commit != sha for stored in known[key]))
    ]
    if merge_request is not None:
        key = _build_key(merge_request)
        new_items += [
            replace(new, git=known[key][0].git)
            for new in items.values()
            if new.key == key in known and _is_merge_message(known[key], merge_request.sha, new)
        ]
    for batch in _split_by_key(new_items):
        results = await memories.remember(principal, batch, headers)
        subject = memory_subject(principal.tenant_name, "remembered", headers)
        events += [
            build_outgoing_event(
                principal.tenant,
                subject,
                {"id": str(result.id), "version": result.version},
                headers,
                result.event,
            )
            for result in results
            if not isinstance(result, ReverieError) and result.event is not None
        ]
    return RememberedCommits(events, omitted)


def _is_merge_message(remembered: Sequence[StoredCommitMemory], sha: str, new: NewMemory) -> bool:
    """Whether nothing but a push wrote the commit's memory, and nobody edited or forgot it."""
    if len(remembered) > 1:
        return False
    [stored] = remembered
    is_told = stored.content_hash == bytes.fromhex(new.content_hash)
    return stored.commit == sha and stored.is_as_made and not is_told


def _split_by_key(items: Sequence[NewMemory]) -> Iterator[list[NewMemory]]:
    """Batches in order, none of which writes a key twice: a commit and its revert."""
    batch: dict[str | None, NewMemory] = {}
    for new in items:
        if new.key in batch:
            yield list(batch.values())
            batch = {}
        batch[new.key] = new
    if batch:
        yield list(batch.values())


def _build_commit_memories(
    scope: str, change: GitChange, merge_request: CommitBody | None
) -> list[NewMemory]:
    files: defaultdict[str | None, list[FileChange]] = defaultdict(list)
    for file in change.files:
        files[file.commit].append(file)
    memories: list[NewMemory] = []
    for commit in (*change.commits, *([merge_request] if merge_request else ())):
        own_files = files[commit.sha] or (files[None] if len(change.commits) == 1 else [])
        memory = _build_commit_memory(scope, change.branch, commit, own_files)
        if memory is not None:
            memories.append(memory)
    return memories


def _build_key(commit: CommitBody) -> str:
    return f"{COMMIT_KEY_PREFIX}{commit.reverts or commit.sha}"


def _build_commit_memory(
    scope: str, branch: str, commit: CommitBody, files: Sequence[FileChange]
) -> NewMemory | None:
    record = extract_commit_record(commit.subject, commit.body)
    if record is None:
        return None
    kept_files = files[:MAX_COMMIT_FILES]
    # A date after the arrival is a wrong clock's.
    committed_at = min(commit.committed_at, datetime.now(UTC))
    return NewMemory(
        id=new_id(),
        scope=scope,
        kind=record.kind,
        content=record.content,
        content_hash=hash_content(record.content),
        words=memory_index_text(None, record.content, (), {}),
        tier=KIND_POLICIES[record.kind].tier,
        confidence=COMMIT_CONFIDENCE,
        key=_build_key(commit),
        supersede_reason="a later commit reverts it"
        if commit.reverts
        else "its request explains it",
        source=COMMIT_SOURCE,
        git={
            "commit": commit.sha,
            "branch": branch,
            "committed_at": committed_at.isoformat(),
            "files": [file.path for file in kept_files],
            "lines": _written_lines(kept_files),
        },
        valid_from=committed_at,
    )


def _written_lines(files: Sequence[FileChange]) -> Mapping[str, Any]:
    """The lines of each file that a commit wrote, where the change tells them."""
    ranges = {
        file.path: [
            [hunk.new_start, hunk.new_start + hunk.new_lines - 1]
            for hunk in file.hunks
            if hunk.new_lines
        ]
        for file in files
        if not file.truncated
    }
    return {path: spans for path, spans in ranges.items() if 0 < len(spans) <= MAX_COMMIT_RANGES}
