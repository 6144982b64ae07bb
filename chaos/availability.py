"""Measures how long each endpoint is unavailable."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import aiohttp

PAUSE = 0.4
LATE = aiohttp.ClientTimeout(total=2)
DOORS = {
    "write": ("PUT", "/v1/vault/probe", {"value": 1}),
    "recall": ("POST", "/v1/recall", {"query": "probe", "limit": 1}),
    "context": ("GET", "/v1/context", None),
    "dream": ("GET", "/v1/dreams?limit=1", None),
    "staleness": ("GET", "/v1/stale?limit=1", None),
}
"""One call through the gateway to each of the services."""


@dataclass
class Door:
    """When it answered, in seconds of the monotonic clock."""

    answered: list[float] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    """What came in place of an answer, by the code of the problem."""

    def longest(self) -> float:
        """The longest time between two answers, in seconds."""
        pairs = zip(self.answered, self.answered[1:], strict=False)
        return max((later - earlier for earlier, later in pairs), default=0.0)

    async def again(self, moment: float, patience: float) -> float:
        """Seconds from the moment to the first answer after it; `patience` where none comes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not self.answered or self.answered[-1] < moment:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
        return next((at - moment for at in self.answered if at >= moment), patience)


@dataclass
class Watch:
    """All doors, tried again and again until it is cancelled."""

    http: aiohttp.ClientSession
    gateway: str
    key: str
    doors: dict[str, Door] = field(default_factory=lambda: {name: Door() for name in DOORS})

    async def stand(self) -> None:
        """Tries each door by itself."""
        await asyncio.gather(*(self._stand_at(name) for name in DOORS))

    async def _stand_at(self, name: str) -> None:
        method, path, body = DOORS[name]
        auth = {"Authorization": f"Bearer {self.key}"}
        door = self.doors[name]
        while True:
            try:
                async with self.http.request(
                    method, self.gateway + path, json=body, headers=auth, timeout=LATE
                ) as answer:
                    text = await answer.text()
                    if answer.status < 300:
                        door.answered.append(time.monotonic())
                    else:
                        door.refused[f"{answer.status} {json.loads(text)['code']}"] += 1
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError) as error:
                door.refused[type(error).__name__] += 1
            await asyncio.sleep(PAUSE)
