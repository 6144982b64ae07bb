"""Sends git changes to the configured gateway, for `reverie git announce` and `git backfill`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from reverie.cli.app.gateway_client import open_client
from reverie.domain.core.errors import Unavailable

if TYPE_CHECKING:
    from reverie.agent.git.announcement_log import SendChange
    from reverie.runtime.settings.settings import Settings

T = TypeVar("T")


async def send_with_client(
    settings: Settings,
    work: Callable[[SendChange], Awaitable[T]],
    hints: dict[str, None] | None = None,
) -> T:
    """Runs `work` with a function that sends changes; `hints` collects those of the answers."""
    from reverie.agent.git.announcement_log import ChangeReceipt
    from reverie.client import ApiError

    async with open_client(settings, "reverie-git") as client:

        async def send(document: dict[str, Any]) -> ChangeReceipt:
            try:
                response = await client.call("POST", "/v1/git/changes", body=document)
            except ApiError as error:
                if error.status in {429, 502, 503, 504}:
                    raise Unavailable("the gateway", str(error)) from error
                raise
            answered = tuple(map(str, response.body.get("hints", ())))
            if hints is not None:
                hints.update(dict.fromkeys(answered))
            return ChangeReceipt(bool(response.body["duplicate"]), answered)

        return await work(send)
