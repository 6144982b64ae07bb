"""HTTP headers that clients and the gateway agree on. Light: hooks wait for this import."""

from __future__ import annotations

POSITION_HEADER = "Reverie-Position"
"""The position in the log of a write; a read that carries it sees that write."""

USER_HEADER = "Reverie-User"
"""Who uses the machine that calls, percent-encoded, as headers are ASCII. It grants nothing."""


def user_header(user: str) -> dict[str, str]:
    """The header that tells a gateway who the user is; none for an empty name."""
    if not user:
        return {}
    from urllib.parse import quote

    return {USER_HEADER: quote(user, safe="@.+-_")}
