"""Memory kinds with their policies, memory tiers by use, and the edge kinds of the graph."""

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


WINDOW_DAYS = 7
"""The days of use that are looked at, the last ones."""
DAILY_DAYS = 4
"""The least of these days on which a memory was used, if it is used daily."""
SESSION_COOLS_AFTER_DAYS = 1.0
"""The days without use after which the memory of one session or group is cold."""

_TIERS = (Tier.HOT, Tier.WARM, Tier.COLD)


def choose_tier(kind: Kind, scope: str, days_used: int, days_idle: float) -> Tier:
    """The tier of a memory that nobody put into one.

    `days_used`: of the last `WINDOW_DAYS`. `days_idle`: since it was written or used last.
    """
    tier = KIND_POLICIES[kind].tier
    if days_used >= DAILY_DAYS:
        return _TIERS[max(_TIERS.index(tier) - 1, 0)]
    is_of_session = scope.startswith("session/")
    return Tier.COLD if is_of_session and days_idle >= SESSION_COOLS_AFTER_DAYS else tier


def explain_tier(tier: Tier, days_used: int) -> str:
    """Why use put a memory into a tier, for its history."""
    if days_used >= DAILY_DAYS:
        return f"{tier.value}: it was used on {days_used} of the last {WINDOW_DAYS} days"
    if tier is Tier.COLD:
        return "cold: its session is over"
    return f"{tier.value} again: it is no longer used daily"
