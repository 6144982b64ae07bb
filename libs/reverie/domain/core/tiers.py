"""The tier that a memory's use gives it."""

from __future__ import annotations

from reverie.domain.core.kinds import KIND_POLICIES, Kind, Tier

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
