"""What the memories of a project keep being about: clusters around what they touch. Pure.

A file or an entity is a centre where enough memories of enough sessions touch it; one that very
many touch says nothing of any. Centres with nearly the same memories are one topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from reverie.domain.scopes import slug

LEAST_MEMORIES: Final = 4
LEAST_SESSIONS: Final = 3
MOST_MEMORIES: Final = 50
"""A centre that more memories touch counts nothing."""
SAME: Final = 0.6
"""From this share in common (Jaccard) on, two centres are one topic."""
MOST_TOPICS: Final = 100
"""Topics of a scope: the largest."""
PREFIX: Final = "topic:"


@dataclass(frozen=True)
class Centre:
    """A file or an entity with the memories that touch it."""

    name: str
    memories: frozenset[UUID]


@dataclass
class Topic:
    """A cluster by the name of the centre that most memories touch."""

    head: Centre
    members: set[UUID] = field(default_factory=set)

    @property
    def key(self) -> str:
        """The key of its node."""
        return PREFIX + slug(self.head.name)


def topics(centres: Iterable[Centre], most: int = MOST_TOPICS) -> list[Topic]:
    """The topics of a scope, the largest centre first; each centre is compared with the heads."""
    found: dict[str, Topic] = {}
    for centre in sorted(centres, key=lambda one: (-len(one.memories), one.name)):
        one = next((t for t in found.values() if _same(t.head, centre)), Topic(centre))
        if one.key in found or len(found) < most:
            found.setdefault(one.key, one).members |= centre.memories
    return list(found.values())


def _same(head: Centre, other: Centre) -> bool:
    if len(other.memories) < SAME * len(head.memories):
        return False
    shared = len(head.memories & other.memories)
    return shared >= SAME * (len(head.memories) + len(other.memories) - shared)
