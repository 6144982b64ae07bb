"""What is stored of anchors and changes, as the rules of staleness read it. Pure."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from reverie.contracts.git import FileChange
from reverie.domain.code_names import code_names
from reverie.domain.lines import Part
from reverie.domain.redaction import redact
from reverie.domain.scopes import branch_view, slug
from reverie.domain.staleness import Anchored, ChangedFile, Commit, Edit, Moved, Step
from reverie.store.doubts import FileStep, Touching

_LINES = TypeAdapter(list[tuple[int, int]])
_SYMBOLS = TypeAdapter(list[tuple[str, int, int]])
_MOMENT: TypeAdapter[datetime] = TypeAdapter(AwareDatetime)
_TOLD = frozenset({"subject", "committed_at", "reverts"})


def anchored(one: Touching, path: str) -> Anchored:
    """The anchor of a memory in the file that is at `path` now, as the memory knew it.

    What an edge says may be odd, for any writer may have sent it: that much is not known then.
    """
    meta = one.meta
    named = meta.get("named") or meta.get("path")
    since = _read(_MOMENT, meta.get("since"))
    told = _read(_MOMENT, (one.git or {}).get("committed_at"))
    parts = _parts(meta)
    return Anchored(
        memory=one.memory,
        path=named if isinstance(named, str) else path,
        known_at=since or told or one.known_at,
        parts=parts,
        words=frozenset() if parts else code_names(one.content),
        blob=meta["blob"] if isinstance(meta.get("blob"), str) else None,
        checked=one.checked,
    )


def _parts(meta: dict[str, Any]) -> tuple[Part, ...]:
    lines = _read(_LINES, meta.get("lines")) or []
    symbols = _read(_SYMBOLS, meta.get("symbols")) or []
    named = tuple(Part(first, last, name) for name, first, last in symbols)
    return (*named, *(Part(first, last) for first, last in lines if 0 < first <= last))


def seen_by(one: Touching, step: FileStep) -> bool:
    """Whether a memory can be concerned: a branch's by what happens on the branch, others by what
    happens on the main line. Once promoted it stays with what happened on its branch, and the
    merge that brought it along is no news to it."""
    branch = branch_view(one.scope)
    if branch is not None:
        return slug(step.branch) == branch
    if one.promoted and slug(step.branch) == one.promoted.get("branch"):
        return True
    merge = (one.promoted or {}).get("event")
    return step.main and str(step.event) != merge


def step_of(raw: FileStep) -> Step:
    """A stored change of a file, without secrets in the words of its commit."""
    facts = raw.facts
    file = FileChange.model_validate(
        {k: v for k, v in facts.items() if k not in _TOLD}, strict=False
    )
    commit = Commit(
        facts.get("commit") or "",
        redact(facts.get("subject") or "").text,
        _MOMENT.validate_python(facts["committed_at"]),
        facts.get("reverts"),
    )
    return Step(changed_file(file), commit, raw.known_at)


def changed_file(file: FileChange) -> ChangedFile:
    """A file's change as it was announced."""
    gone = frozenset(one.name for one in file.symbols if one.change == "removed")
    return ChangedFile(
        path=file.path,
        status=file.status,
        old_path=file.old_path,
        edits=tuple(
            Edit(hunk.place, hunk.kind, frozenset(hunk.symbols), frozenset(hunk.words))
            for hunk in file.hunks
        ),
        moved=tuple(
            Moved(
                one.old_start,
                one.old_start + one.lines - 1,
                one.path,
                one.new_start,
                one.similarity,
            )
            for one in file.moved
        ),
        removed=gone,
        cut=file.cut,
        perhaps=file.perhaps is not None,
        old_blob=file.old_blob,
        new_blob=file.new_blob,
    )


def _read(adapter: TypeAdapter[Any], given: object) -> Any:
    with suppress(ValidationError):
        return adapter.validate_python(given)
    return None
