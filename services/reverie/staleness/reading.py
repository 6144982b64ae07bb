"""What is stored of anchors and changes, as the rules of staleness read it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from reverie.domain.code_names import code_names
from reverie.domain.lines import Part
from reverie.domain.scopes import branch_view, slug
from reverie.domain.staleness import Anchored, ChangedFile, Commit, Edit, Moved, Step
from reverie.store.doubts import FileStep, Touching

_LINES = TypeAdapter(list[tuple[int, int]])
_SYMBOLS = TypeAdapter(list[tuple[str, int, int]])
_MOMENT: TypeAdapter[datetime] = TypeAdapter(AwareDatetime)


def anchored(one: Touching, path: str) -> Anchored:
    """The anchor of a memory in the file that is at `path` now, as the memory knew it.

    What an edge says may be odd, for any writer may have sent it: that much is not known then.
    """
    meta = one.meta
    named = meta.get("named") or meta.get("path")
    since = _read(_MOMENT, meta.get("since"))
    told = _read(_MOMENT, (one.git or {}).get("committed_at"))
    wrote = _read(_MOMENT, meta.get("wrote"))
    known = told or one.known_at
    parts = _parts(meta)
    return Anchored(
        memory=one.memory,
        path=named if isinstance(named, str) else path,
        known_at=since or max(known, wrote or known),
        parts=parts,
        words=frozenset() if parts else code_names(one.content),
        blob=meta["blob"] if isinstance(meta.get("blob"), str) else None,
        checked=one.checked,
        wrote=wrote,
    )


def _parts(meta: dict[str, Any]) -> tuple[Part, ...]:
    lines = _read(_LINES, meta.get("lines")) or []
    symbols = _read(_SYMBOLS, meta.get("symbols")) or []
    named = tuple(Part(first, last, name) for name, first, last in symbols)
    return (*named, *(Part(first, last) for first, last in lines if 0 < first <= last))


def seen_by(one: Touching, step: FileStep, merges: Mapping[str, frozenset[UUID]]) -> bool:
    """Whether a memory can be concerned: a branch's by what happens on the branch, others by what
    happens on the main line. Once promoted it stays with what happened on its branch, and the
    merge that brought it along is no news to it. `merges`: the changes that led to a commit."""
    branch = branch_view(one.scope)
    if branch is not None:
        return slug(step.branch) == branch
    promoted = one.promoted or {}
    if promoted and slug(step.branch) == promoted.get("branch"):
        return True
    own = str(step.event) == promoted.get("event")
    return step.main and not own and step.event not in merges.get(promoted.get("commit", ""), ())


def step_of(raw: FileStep) -> Step:
    """A stored change of a file. It was held against its schema when it came: here it is read a
    thousand times as often."""
    facts = raw.facts
    commit = Commit(
        facts.get("commit") or "",
        facts.get("subject") or "",
        datetime.fromisoformat(facts["committed_at"]),
        facts.get("reverts"),
    )
    return Step(changed_file(facts), commit, raw.known_at)


def changed_file(facts: dict[str, Any]) -> ChangedFile:
    """A file's change as it is stored."""
    return ChangedFile(
        path=facts["path"],
        status=facts["status"],
        old_path=facts.get("old_path"),
        edits=tuple(_edit(hunk) for hunk in facts.get("hunks", ())),
        moved=tuple(_moved(one) for one in facts.get("moved", ())),
        removed=frozenset(
            one["name"] for one in facts.get("symbols", ()) if one["change"] == "removed"
        ),
        cut=facts.get("cut", False),
        perhaps=facts.get("perhaps") is not None,
        old_blob=facts.get("old_blob"),
        new_blob=facts.get("new_blob"),
    )


def _edit(hunk: Any) -> Edit:
    """A hunk may be stored as its four numbers."""
    if isinstance(hunk, list):
        return Edit((hunk[0], hunk[1], hunk[2], hunk[3]))
    place = (hunk["old_start"], hunk["old_lines"], hunk["new_start"], hunk["new_lines"])
    names = frozenset(hunk.get("symbols", ())), frozenset(hunk.get("words", ()))
    return Edit(place, hunk.get("kind"), *names)


def _moved(one: dict[str, Any]) -> Moved:
    last = one["old_start"] + one["lines"] - 1
    similarity = one.get("similarity", 1.0)
    return Moved(one["old_start"], last, one["path"], one["new_start"], similarity)


def _read(adapter: TypeAdapter[Any], given: object) -> Any:
    with suppress(ValidationError):
        return adapter.validate_python(given)
    return None
