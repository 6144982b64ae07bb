"""What dream takes from the bus: tickets. Any ticket wakes; Postgres says what is due."""

from __future__ import annotations

from reverie.bus.errors import Retry
from reverie.bus.port import Message
from reverie.dream.digest import dream
from reverie.dream.parts import Parts


async def on_ticket(parts: Parts, _: Message) -> None:
    """Dreams until nothing is due. A dream that failed asks to be woken again."""
    failed = False
    while lease := await parts.dreams.claim(parts.settings.worker, parts.settings.lease_seconds):
        failed = await dream(parts, lease) == "retry" or failed
    if failed:
        raise Retry(parts.settings.pause_seconds * 2, "a dream failed and is due again")
