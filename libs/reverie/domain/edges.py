"""Edges of the memory graph."""

from __future__ import annotations

from enum import StrEnum

from reverie.domain.errors import Invalid


class EdgeKind(StrEnum):
    """How two memories hang together. `follows` is derived, never stored."""

    CAUSED_BY = "caused_by"
    LED_TO = "led_to"
    SUPERSEDES = "supersedes"
    LEARNED_IN = "learned_in"
    PART_OF = "part_of"
    RELATES_TO = "relates_to"
    DEPENDS_ON = "depends_on"
    TOUCHES = "touches"
    CONTRADICTS = "contradicts"
    FOLLOWS = "follows"


CAUSAL = frozenset(
    {
        EdgeKind.CAUSED_BY,
        EdgeKind.LED_TO,
        EdgeKind.SUPERSEDES,
        EdgeKind.LEARNED_IN,
        EdgeKind.PART_OF,
    }
)

STORED = tuple(kind for kind in EdgeKind if kind is not EdgeKind.FOLLOWS)


def parse_edge_kind(name: str) -> EdgeKind:
    """The stored edge kind of that name. Raises `Invalid` naming the choices."""
    try:
        kind = EdgeKind(name)
    except ValueError:
        kind = EdgeKind.FOLLOWS
    if kind is EdgeKind.FOLLOWS:
        choices = ", ".join(k.value for k in STORED)
        raise Invalid("type", f"{name[:40]!r} is not an edge type: use one of {choices}")
    return kind
