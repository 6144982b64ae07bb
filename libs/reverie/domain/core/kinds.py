"""Memory kinds with their policies, memory tiers, and the edge kinds of the graph."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reverie.domain.core.errors import InvalidInput


class Tier(StrEnum):
    """When a memory is loaded: at session start, near the query, or on demand."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


class Kind(StrEnum):
    """What a memory is about."""

    CONVENTION = "convention"
    DECISION = "decision"
    BUG = "bug"
    SPEC = "spec"
    TASK = "task"
    PREFERENCE = "preference"
    SESSION = "session"
    FILE = "file"
    ENTITY = "entity"
    IDENTITY = "identity"
    LESSON = "lesson"
    CONTEXT = "context"
    REFERENCE = "reference"
    HISTORICAL = "historical"
    SKILL = "skill"


@dataclass(frozen=True)
class KindPolicy:
    """The policy of a kind: its default tier, whether a session starts with it, and its decay."""

    tier: Tier
    in_session_context: bool
    decays: bool
    aliases: tuple[str, ...] = ()
    half_life_days: float = 30.0


KIND_POLICIES: dict[Kind, KindPolicy] = {
    Kind.IDENTITY: KindPolicy(
        Tier.HOT, in_session_context=True, decays=False, aliases=("core", "self")
    ),
    Kind.CONVENTION: KindPolicy(Tier.HOT, in_session_context=True, decays=True, aliases=("rule",)),
    Kind.PREFERENCE: KindPolicy(Tier.HOT, in_session_context=True, decays=True),
    Kind.TASK: KindPolicy(Tier.HOT, in_session_context=True, decays=True, aliases=("todo",)),
    Kind.LESSON: KindPolicy(
        Tier.WARM, in_session_context=True, decays=False, aliases=("warning", "insight", "learning")
    ),
    Kind.DECISION: KindPolicy(
        Tier.WARM, in_session_context=True, decays=True, aliases=("commitment", "choice")
    ),
    Kind.CONTEXT: KindPolicy(
        Tier.WARM, in_session_context=True, decays=True, aliases=("active", "background")
    ),
    Kind.BUG: KindPolicy(Tier.WARM, in_session_context=False, decays=True, aliases=("fix",)),
    Kind.SPEC: KindPolicy(Tier.COLD, in_session_context=False, decays=True),
    Kind.SKILL: KindPolicy(
        Tier.WARM, in_session_context=False, decays=True, aliases=("procedure",)
    ),
    Kind.SESSION: KindPolicy(Tier.COLD, in_session_context=False, decays=True),
    Kind.FILE: KindPolicy(Tier.COLD, in_session_context=False, decays=True),
    Kind.ENTITY: KindPolicy(Tier.COLD, in_session_context=False, decays=True),
    Kind.REFERENCE: KindPolicy(
        Tier.COLD, in_session_context=False, decays=True, aliases=("pointer", "link")
    ),
    Kind.HISTORICAL: KindPolicy(
        Tier.COLD, in_session_context=False, decays=True, aliases=("archive", "past")
    ),
}

ANCHOR_KINDS = frozenset({Kind.FILE, Kind.ENTITY})

_KIND_BY_NAME: dict[str, Kind] = {kind.value: kind for kind in Kind} | {
    alias: kind for kind, treatment in KIND_POLICIES.items() for alias in treatment.aliases
}


def is_kind(name: str) -> bool:
    """Whether a name is a kind or an alias of one."""
    return name.strip().lower() in _KIND_BY_NAME


def parse_kind(name: str) -> Kind:
    """The kind that `name` or its alias means. Raises `InvalidInput` naming the choices."""
    kind = _KIND_BY_NAME.get(name.strip().lower())
    if kind is None:
        choices = ", ".join(k.value for k in Kind)
        raise InvalidInput("kind", f"{name[:40]!r} is not a kind: use one of {choices}")
    return kind


class EdgeKind(StrEnum):
    """The relation of two memories. `follows` is derived, never stored."""

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


CAUSAL_EDGE_KINDS = frozenset(
    {
        EdgeKind.CAUSED_BY,
        EdgeKind.LED_TO,
        EdgeKind.SUPERSEDES,
        EdgeKind.LEARNED_IN,
        EdgeKind.PART_OF,
    }
)

STORED_EDGE_KINDS = tuple(kind for kind in EdgeKind if kind is not EdgeKind.FOLLOWS)


def parse_edge_kind(name: str) -> EdgeKind:
    """The stored edge kind of that name. Raises `InvalidInput` naming the choices."""
    try:
        kind = EdgeKind(name)
    except ValueError:
        kind = EdgeKind.FOLLOWS
    if kind is EdgeKind.FOLLOWS:
        choices = ", ".join(k.value for k in STORED_EDGE_KINDS)
        raise InvalidInput("type", f"{name[:40]!r} is not an edge type: use one of {choices}")
    return kind
