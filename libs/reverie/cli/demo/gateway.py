"""The sample day's HTTP client of the gateway: JSON requests, typed responses."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast

import aiohttp
from pydantic import BaseModel, ValidationError
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_delay, wait_fixed

from reverie.domain.core.errors import ReverieError

Answer = TypeVar("Answer", bound=BaseModel)
Result = TypeVar("Result")

PAUSE_SECONDS = 0.2


@dataclass
class SampleDayError(ReverieError):
    """{reason}"""

    code: ClassVar[str] = "internal"
    reason: str


@dataclass
class SampleDayGateway:
    """Speaks to the gateway. `elapsed_ms` is what the last call took, in milliseconds."""

    http: aiohttp.ClientSession
    elapsed_ms: float = 0.0

    async def get(self, path: str, kind: type[Answer], **query: str) -> Answer:
        """Reads. Raises `SampleDayError` on anything but a good answer."""
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

    async def _call(self, method: str, path: str, kind: type[Answer], **options: Any) -> Answer:
        start = time.perf_counter()
        try:
            async with self.http.request(method, path, **options) as response:
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SampleDayError(f"{method} {path}: {error or type(error).__name__}") from error
        self.elapsed_ms = (time.perf_counter() - start) * 1000
        if response.status >= 400:
            raise SampleDayError(
                f"{method} {path} was answered with {response.status}: {text[:300]}"
            )
        return _parse_response(kind, text, f"{method} {path}")


def new_trace() -> str:
    """A fresh trace id: 32 hex digits (W3C Trace Context)."""
    return secrets.token_hex(16)


async def wait_until(
    check: Callable[[], Awaitable[Result | None]], timeout_seconds: float, missing: str
) -> Result:
    """The first thing that `check` finds.

    Raises `SampleDayError(missing)` after `timeout_seconds`.
    """
    retrying = AsyncRetrying(
        stop=stop_after_delay(timeout_seconds),
        wait=wait_fixed(PAUSE_SECONDS),
        retry=retry_if_result(lambda result: result is None),
    )
    try:
        result: Result | None = await retrying(check)
    except RetryError:
        result = None
    require(result is not None, f"{missing} (waited {timeout_seconds:.0f} s)")
    return cast("Result", result)


def require(condition: bool, reason: str) -> None:
    """Raises `SampleDayError(reason)` where something does not hold."""
    if not condition:
        raise SampleDayError(reason)


def _parse_response(kind: type[Answer], text: str, call: str) -> Answer:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise SampleDayError(
            f"{call}: the answer is not understood: {error.errors()[0]}"
        ) from error
