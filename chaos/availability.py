"""Measures how long each endpoint is unavailable."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import aiohttp

PROBE_INTERVAL = 0.4
PROBE_TIMEOUT = aiohttp.ClientTimeout(total=2)
ENDPOINTS = {
    "write": ("PUT", "/v1/vault/probe", {"value": 1}),
    "recall": ("POST", "/v1/recall", {"query": "probe", "limit": 1}),
    "context": ("GET", "/v1/context", None),
    "dream": ("GET", "/v1/dreams?limit=1", None),
    "staleness": ("GET", "/v1/stale?limit=1", None),
}
"""One call through the gateway to each of the services."""


@dataclass
class Endpoint:
    """When it answered, in seconds of the monotonic clock."""

    answered: list[float] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    """What came in place of an answer, by the code of the problem."""

    def longest_gap(self) -> float:
        """The longest time between two answers, in seconds."""
        pairs = zip(self.answered, self.answered[1:], strict=False)
        return max((later - earlier for earlier, later in pairs), default=0.0)

    async def recovery_time(self, moment: float, patience: float) -> float:
        """Seconds from the moment to the first answer after it; `patience` where none comes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not self.answered or self.answered[-1] < moment:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
        return next((at - moment for at in self.answered if at >= moment), patience)


@dataclass
class AvailabilityMonitor:
    """All endpoints, tried again and again until it is cancelled."""

    http: aiohttp.ClientSession
    gateway: str
    key: str
    endpoints: dict[str, Endpoint] = field(
        default_factory=lambda: {name: Endpoint() for name in ENDPOINTS}
    )

    async def run(self) -> None:
        """Tries each endpoint by itself."""
        await asyncio.gather(*(self._probe(name) for name in ENDPOINTS))

    async def _probe(self, name: str) -> None:
        method, path, body = ENDPOINTS[name]
        auth = {"Authorization": f"Bearer {self.key}"}
        endpoint = self.endpoints[name]
        while True:
            try:
                async with self.http.request(
                    method, self.gateway + path, json=body, headers=auth, timeout=PROBE_TIMEOUT
                ) as answer:
                    text = await answer.text()
                    if answer.status < 300:
                        endpoint.answered.append(time.monotonic())
                    else:
                        endpoint.refused[f"{answer.status} {json.loads(text)['code']}"] += 1
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError) as error:
                endpoint.refused[type(error).__name__] += 1
            await asyncio.sleep(PROBE_INTERVAL)
