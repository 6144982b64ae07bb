"""Which nodes of a graph hang together, whichever way their edges point. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def component_sizes(pairs: Iterable[tuple[Node, Node]]) -> list[int]:
    """The sizes of the components that the pairs make, the largest first (union by halving)."""
    parent: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for one, other in pairs:
        parent[root(one)] = root(other)
    return sorted(Counter(root(node) for node in list(parent)).values(), reverse=True)
