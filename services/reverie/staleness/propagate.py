"""From a stored change to marks on memories: anchors that changed, memories that touch them."""

from __future__ import annotations

from uuid import UUID

import structlog
from pydantic import TypeAdapter, ValidationError

from reverie.bus.relay import publish_now
from reverie.contracts.git import GitChange
from reverie.domain.anchors import same_file
from reverie.domain.known_secrets import knowing
from reverie.domain.redaction import redact
from reverie.domain.staleness import Anchored, Change, ChangedFile, Commit, Lines, assess
from reverie.runtime.telemetry import inject_headers, span
from reverie.staleness.parts import Parts
from reverie.store.changes import Stored, Touching

log = structlog.get_logger("reverie.staleness")

_LINES = TypeAdapter(Lines | None)


async def apply_change(parts: Parts, tenant: int, tenant_name: str, change_id: UUID) -> None:
    """Marks what a change makes doubtful and moves renamed anchors. Safe to repeat.

    Repeats it by itself where a memory got its anchors meanwhile, which opens the change again.
    """
    while stored := await parts.changes.get(tenant, change_id):
        if stored.processed:
            return
        with span("apply change", files=len(stored.body.files)):
            await _apply(parts, (tenant, tenant_name), stored)


async def _apply(parts: Parts, tenant: tuple[int, str], stored: Stored) -> None:
    with knowing(await parts.known_of(tenant[0]), lambda _: False):
        change = to_domain(stored.body)
    touching = await parts.changes.touching(tenant[0], stored.project, _names(change))
    result = assess(change, [_anchored(one) for one in touching], same_file)
    moves = sorted({(move.old, move.new) for move in result.moves})
    events = await parts.changes.apply(tenant, stored, result.marks, moves, inject_headers())
    await publish_now(parts.bus, parts.outbox, tenant[0], events)
    memories = len({mark.memory for mark in result.marks})
    log.info("change_applied", change=str(stored.id), memories=memories, moves=len(moves))


def to_domain(body: GitChange) -> Change:
    """The change as the rules read it: commits oldest first, without secrets in their words."""
    commits = sorted(
        (Commit(one.sha, redact(one.subject).text, one.committed_at) for one in body.commits),
        key=lambda commit: commit.committed_at,
    )
    files = tuple(
        ChangedFile(
            one.path, one.status, one.old_path, tuple(hunk.place for hunk in one.hunks), one.commit
        )
        for one in body.files
    )
    return Change(tuple(commits), files)


def _names(change: Change) -> list[str]:
    """The last components, in lower case, of all paths that may be anchored."""
    paths = (path for file in change.files for path in (file.path, file.known_as))
    return sorted({path.rsplit("/", 1)[-1].lower() for path in paths})


def _anchored(one: Touching) -> Anchored:
    return Anchored(one.memory, one.path, one.known_at, _lines(one))


def _lines(one: Touching) -> Lines | None:
    """The lines that the memory knows of this file; none from an edge whose metadata is odd, which
    any writer may have sent."""
    try:
        return _LINES.validate_python(one.lines)
    except ValidationError:
        return None
