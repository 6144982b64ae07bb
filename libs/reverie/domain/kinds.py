"""What kinds of memory there are, and how each is treated: one table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reverie.domain.errors import Invalid


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
class Treatment:
    """How a kind is treated: default tier, shown at session start, decaying or not and how fast."""

    tier: Tier
    injected: bool
    decays: bool
    aliases: tuple[str, ...] = ()
    half_life_days: float = 30.0


TREATMENT: dict[Kind, Treatment] = {
    Kind.IDENTITY: Treatment(Tier.HOT, injected=True, decays=False, aliases=("core", "self")),
    Kind.CONVENTION: Treatment(Tier.HOT, injected=True, decays=True, aliases=("rule",)),
    Kind.PREFERENCE: Treatment(Tier.HOT, injected=True, decays=True),
    Kind.TASK: Treatment(Tier.HOT, injected=True, decays=True, aliases=("todo",)),
    Kind.LESSON: Treatment(
        Tier.WARM, injected=True, decays=False, aliases=("warning", "insight", "learning")
    ),
    Kind.DECISION: Treatment(
        Tier.WARM, injected=True, decays=True, aliases=("commitment", "choice")
    ),
    Kind.CONTEXT: Treatment(
        Tier.WARM, injected=True, decays=True, aliases=("active", "background")
    ),
    Kind.BUG: Treatment(Tier.WARM, injected=False, decays=True, aliases=("fix",)),
    Kind.SPEC: Treatment(Tier.WARM, injected=False, decays=True),
    Kind.SKILL: Treatment(Tier.WARM, injected=False, decays=True, aliases=("procedure",)),
    Kind.SESSION: Treatment(Tier.COLD, injected=False, decays=True),
    Kind.FILE: Treatment(Tier.COLD, injected=False, decays=True),
    Kind.ENTITY: Treatment(Tier.COLD, injected=False, decays=True),
    Kind.REFERENCE: Treatment(Tier.COLD, injected=False, decays=True, aliases=("pointer", "link")),
    Kind.HISTORICAL: Treatment(Tier.COLD, injected=False, decays=True, aliases=("archive", "past")),
}

ANCHORS = frozenset({Kind.FILE, Kind.ENTITY})

_BY_NAME: dict[str, Kind] = {kind.value: kind for kind in Kind} | {
    alias: kind for kind, treatment in TREATMENT.items() for alias in treatment.aliases
}


def is_kind(name: str) -> bool:
    """Whether that is the name of a kind, or an alias of one."""
    return name.strip().lower() in _BY_NAME


def parse_kind(name: str) -> Kind:
    """The kind that `name` or its alias means. Raises `Invalid` naming the choices."""
    kind = _BY_NAME.get(name.strip().lower())
    if kind is None:
        choices = ", ".join(k.value for k in Kind)
        raise Invalid("kind", f"{name[:40]!r} is not a kind: use one of {choices}")
    return kind
