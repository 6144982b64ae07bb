"""One HTTP call to a gateway: the key, the timeout, and trying again where that is safe."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeAlias
from urllib.parse import urlencode
from uuid import uuid4

import aiohttp
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    wait_random_exponential,
)

from reverie.client.errors import refused
from reverie.contracts.trust import trusting
from reverie.domain.errors import Unavailable
from reverie.domain.positions import further

Scalar: TypeAlias = str | int | float | bool
Query: TypeAlias = Mapping[str, Scalar | Sequence[Scalar] | None]

_READS = frozenset({"GET", "HEAD"})
_ASKING = frozenset({"/v1/recall"})
"""POST calls that only read."""
_AWAY = frozenset({502, 503, 504})
_BROKEN = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError)
"""Before the answer came, or in the midst of it."""
_POSITION = "Reverie-Position"
"""Where a write stands, which reads name so that they see it, whichever server answers them."""
_LONGEST_WAIT = 10.0
_CONNECT_SECONDS = 5.0
_SILENCE_SECONDS = 60.0
"""A stream that is alive says so more often."""
_JITTER = wait_random_exponential(multiplier=0.1, max=2.0)


@dataclass(frozen=True)
class Answered:
    """What came back. `body` is decoded JSON, or text where it is none."""

    status: int
    body: Any
    headers: Mapping[str, str]


class _Lost(Exception):
    """The call may have arrived; it may be made again."""


class Caller:
    """Calls one gateway.

    `timeout`: seconds for one try. `tries`: how often at most a call is made. A call is made again
    where the gateway does not answer: what changes something carries an `Idempotency-Key`, so that
    its effects happen once. What is too many (429) is asked again where there is room within ten
    seconds. `ca`: a PEM file with authorities to trust beside the system's.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        tries: int = 4,
        agent: str = "reverie",
        ca: Path | str | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._key = key
        self._timeout = aiohttp.ClientTimeout(
            total=timeout, sock_connect=min(timeout, _CONNECT_SECONDS)
        )
        self.tries = tries
        self._agent = agent
        self._ca = ca
        self._http: aiohttp.ClientSession | None = None
        self._written: str | None = None

    async def __aenter__(self) -> Caller:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Gives back the connections."""
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def call(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """The gateway's answer, a refusal too. Raises `Unavailable` where there is none."""
        asking = method in _READS or path in _ASKING
        sent = dict(headers or {})
        if not asking:
            sent.setdefault("Idempotency-Key", str(uuid4()))
        elif self._written is not None:
            sent.setdefault(_POSITION, self._written)
        where = f"{self.url}{path}{_query(query)}"
        tries = AsyncRetrying(
            stop=stop_after_attempt(self.tries),
            wait=_wait,
            retry=retry_if_exception_type(_Lost) | retry_if_result(_may_come_back),
            retry_error_callback=_last,
        )
        try:
            return await tries(self._once, method, where, body, sent)
        except (_Lost, aiohttp.ClientError, OSError) as error:
            raise self._away() from error

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """A good answer, read as it comes. Raises `Refused`, and `Unavailable` where it breaks."""
        patience = aiohttp.ClientTimeout(sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS)
        where = f"{self.url}{path}{_query(query)}"
        try:
            async with self._session().request(
                method, where, headers=headers, timeout=patience
            ) as answer:
                if answer.status in _AWAY:
                    raise self._away()
                if answer.status >= 400:
                    raise refused(answer.status, _decoded(await answer.read()), f"{method} {path}")
                yield answer.content
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._away() from error

    async def upload(
        self, path: str, query: Query, source: bytes | IO[bytes], kind: str, seconds: float
    ) -> Answered:
        """Sends a file, once. Raises `Refused` and `Unavailable`."""
        patience = aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT_SECONDS)
        where, headers = f"{self.url}{path}{_query(query)}", {"Content-Type": kind}
        data = io.BytesIO(source) if isinstance(source, bytes) else source
        try:
            async with self._session().post(
                where, data=data, headers=headers, timeout=patience
            ) as answer:
                found = Answered(answer.status, _decoded(await answer.read()), answer.headers)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._away() from error
        if found.status >= 400:
            raise refused(found.status, found.body, f"POST {path}")
        return found

    def _away(self) -> Unavailable:
        return Unavailable(f"the gateway at {self.url}", "does `reverie up` run?")

    async def _once(
        self, method: str, where: str, body: Any, headers: Mapping[str, str]
    ) -> Answered:
        data = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if data is not None else {}
        try:
            async with self._session().request(
                method, where, data=io.BytesIO(data) if data else None, headers={**kind, **headers}
            ) as answer:
                self._written = further(self._written, answer.headers.get(_POSITION))
                return Answered(answer.status, _decoded(await answer.read()), answer.headers)
        except (*_BROKEN, TimeoutError) as error:
            raise _Lost from error

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None or self._http.closed:
            headers = {"Authorization": f"Bearer {self._key}", "User-Agent": self._agent}
            self._http = aiohttp.ClientSession(
                headers=headers,
                timeout=self._timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                connector=aiohttp.TCPConnector(ssl=trusting(self._ca) if self._ca else True),
            )
        return self._http


def _query(query: Query | None) -> str:
    """The parameters as they stand in the address; what is None is left out, lists repeat."""
    pairs = [
        (name, _text(one))
        for name, value in (query or {}).items()
        if value is not None
        for one in ([value] if isinstance(value, Scalar) else value)
    ]
    return f"?{urlencode(pairs)}" if pairs else ""


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode("utf-8", "replace")


def _may_come_back(answer: Answered) -> bool:
    """Whether the same call may be answered in a moment.

    409 where its twin is still under way, 429 where there is room again soon.
    """
    twin = answer.status == 409 and "Retry-After" in answer.headers
    soon = answer.status == 429 and _asked(answer) <= _LONGEST_WAIT
    return twin or soon or answer.status in _AWAY


def _asked(answer: Answered) -> float:
    """The seconds that the gateway asks to wait; 0 where it does not."""
    said = answer.headers.get("Retry-After", "0")
    return float(said) if said.isdigit() else 0.0


def _wait(state: RetryCallState) -> float:
    """What the gateway asks for (`Retry-After`, seconds), and never all clients at once."""
    outcome = state.outcome
    asked = 0.0
    if outcome is not None and not outcome.failed:
        asked = min(_asked(outcome.result()), _LONGEST_WAIT)
    return asked + _JITTER(state)


def _last(state: RetryCallState) -> Answered:
    """The last answer, or what the last try failed with."""
    assert state.outcome is not None
    answer: Answered = state.outcome.result()
    return answer
