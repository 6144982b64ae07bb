"""Clusters of a memory graph: connected components, and topics around shared files and entities.

A file or an entity is a centre if enough memories of enough sessions touch it. Centres with nearly
the same memories are one topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeVar
from uuid import UUID

from reverie.domain.access.scopes import slugify

Node = TypeVar("Node", bound=Hashable)


def count_component_sizes(pairs: Iterable[tuple[Node, Node]]) -> list[int]:
    """The sizes of the components that the pairs make, the largest first (union by halving)."""
    parent: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for first, second in pairs:
        parent[root(first)] = root(second)
    return sorted(Counter(root(node) for node in list(parent)).values(), reverse=True)


MIN_MEMORIES: Final = 4
MIN_SESSIONS: Final = 3
MAX_MEMORIES: Final = 50
"""A centre that more memories touch counts nothing."""
MIN_TOPIC_OVERLAP: Final = 0.6
"""From this share in common (Jaccard) on, two centres are one topic."""
MAX_TOPICS: Final = 100
"""Topics of a scope: the largest."""
TOPIC_KEY_PREFIX: Final = "topic:"


@dataclass(frozen=True)
class TopicCentre:
    """A file or an entity with the memories that touch it."""

    name: str
    memories: frozenset[UUID]


@dataclass
class TopicCluster:
    """A cluster by the name of the centre that most memories touch."""

    centre: TopicCentre
    members: set[UUID] = field(default_factory=set)

    @property
    def key(self) -> str:
        """The key of its node."""
        return TOPIC_KEY_PREFIX + slugify(self.centre.name)


def cluster_topics(centres: Iterable[TopicCentre], limit: int = MAX_TOPICS) -> list[TopicCluster]:
    """The topics of a scope, the largest centre first; each centre is compared with the heads."""
    clusters: dict[str, TopicCluster] = {}
    for centre in sorted(centres, key=lambda item: (-len(item.memories), item.name)):
        item = next(
            (cluster for cluster in clusters.values() if _is_same_topic(cluster.centre, centre)),
            TopicCluster(centre),
        )
        if item.key in clusters or len(clusters) < limit:
            clusters.setdefault(item.key, item).members |= centre.memories
    return list(clusters.values())


def _is_same_topic(first: TopicCentre, second: TopicCentre) -> bool:
    if len(second.memories) < MIN_TOPIC_OVERLAP * len(first.memories):
        return False
    shared = len(first.memories & second.memories)
    return shared >= MIN_TOPIC_OVERLAP * (len(first.memories) + len(second.memories) - shared)
