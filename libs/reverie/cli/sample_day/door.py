"""The gateway as the sample day sees it: one address, JSON in, typed answers out."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast

import aiohttp
from pydantic import BaseModel, ValidationError
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_delay, wait_fixed

from reverie.domain.errors import ReverieError

Answer = TypeVar("Answer", bound=BaseModel)
Found = TypeVar("Found")

PAUSE_SECONDS = 0.2


@dataclass
class Unshown(ReverieError):
    """{reason}"""

    code: ClassVar[str] = "internal"
    reason: str


@dataclass
class Door:
    """Speaks to the gateway. `took_ms` is what the last call took, in milliseconds."""

    http: aiohttp.ClientSession
    took_ms: float = 0.0

    async def get(self, path: str, kind: type[Answer], **query: str) -> Answer:
        """Reads. Raises `Unshown` on anything but a good answer."""
        return await self._call("GET", path, kind, params=query)

    async def post(
        self, path: str, body: BaseModel, kind: type[Answer], trace: str | None = None
    ) -> Answer:
        """Writes or asks; `trace` names the trace (32 hex digits) this request begins."""
        headers = {"Content-Type": "application/json"}
        if trace:
            headers["traceparent"] = f"00-{trace}-{secrets.token_hex(8)}-01"
        data = body.model_dump_json(exclude_unset=True)
        return await self._call("POST", path, kind, data=data, headers=headers)

    async def _call(self, method: str, path: str, kind: type[Answer], **how: Any) -> Answer:
        start = time.perf_counter()
        try:
            async with self.http.request(method, path, **how) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unshown(f"{method} {path}: {error or type(error).__name__}") from error
        self.took_ms = (time.perf_counter() - start) * 1000
        if answer.status >= 400:
            raise Unshown(f"{method} {path} was answered with {answer.status}: {text[:300]}")
        return _read(kind, text, f"{method} {path}")


def new_trace() -> str:
    """A fresh trace id: 32 hex digits (W3C Trace Context)."""
    return secrets.token_hex(16)


async def until(look: Callable[[], Awaitable[Found | None]], seconds: float, missing: str) -> Found:
    """The first thing that `look` finds. Raises `Unshown(missing)` after `seconds`."""
    tries = AsyncRetrying(
        stop=stop_after_delay(seconds),
        wait=wait_fixed(PAUSE_SECONDS),
        retry=retry_if_result(lambda found: found is None),
    )
    try:
        found: Found | None = await tries(look)
    except RetryError:
        found = None
    require(found is not None, f"{missing} (waited {seconds:.0f} s)")
    return cast("Found", found)


def require(holds: bool, reason: str) -> None:
    """Raises `Unshown(reason)` where something does not hold."""
    if not holds:
        raise Unshown(reason)


def _read(kind: type[Answer], text: str, call: str) -> Answer:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise Unshown(f"{call}: the answer is not understood: {error.errors()[0]}") from error
