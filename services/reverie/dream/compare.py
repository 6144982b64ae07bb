"""What a digest found, held against what its scope knows: same, more, the opposite, or new."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from reverie.domain.likeness import Likeness, Said, Verdict, judge
from reverie.domain.memory import NewMemory
from reverie.dream.parts import Parts
from reverie.store.dreams import Lease, Like

CANDIDATES = 12
_FIRST = UUID(int=0)


async def compared(parts: Parts, lease: Lease, items: Sequence[NewMemory]) -> dict[UUID, Like]:
    """How new memories stand to what is known, by id; what is not in it is new.

    What has a key is left out: its key says what it takes the place of.
    """
    found: dict[UUID, Like] = {}
    taken: set[UUID] = set()
    for item in items:
        like = None if item.key else await _like(parts, lease, item, taken)
        if like:
            found[item.id] = like
            taken.add(like.id)
    return found


async def _like(parts: Parts, lease: Lease, item: NewMemory, taken: set[UUID]) -> Like | None:
    """The first that says the same, else that says less, else that speaks against it: of those that
    give another value the last that was said."""
    known = await parts.dreams.alike(lease, item.words, CANDIDATES)
    judged = [
        (id, version, judge(said, _said(item))) for id, version, said in known if id not in taken
    ]
    judged.sort(key=lambda one: one[0] if one[2].valued else _FIRST, reverse=True)
    for verdict in ("same", "refined", "contradicting"):
        for id, version, likeness in judged:
            if _verdict(likeness) == verdict:
                return Like(id, version, verdict, likeness.reason)
    return None


def _verdict(likeness: Likeness) -> str | None:
    """`same` also where the known one says more."""
    names = {
        Verdict.DUPLICATE: "same",
        Verdict.REFINED: "refined",
        Verdict.CONTRADICTING: "contradicting",
    }
    return names.get(likeness.verdict)


def _said(item: NewMemory) -> Said:
    return Said(
        content=item.content,
        kind=item.kind,
        files=frozenset((item.git or {}).get("files", ())),
        valid_from=item.valid_from,
    )
