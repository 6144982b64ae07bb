"""Sends one HTTP call to a gateway, with the API key, a timeout and safe retries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias
from uuid import uuid4

import httpx2
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    wait_random_exponential,
)

from reverie.client.errors import build_api_error
from reverie.contracts.headers import POSITION_HEADER, user_header
from reverie.contracts.tls import create_tls_context
from reverie.domain.core.consistency import later_lsn
from reverie.domain.core.errors import InvalidInput, Unavailable

Scalar: TypeAlias = str | int | float | bool
Query: TypeAlias = Mapping[str, Scalar | Sequence[Scalar] | None]

_READ_METHODS = frozenset({"GET", "HEAD"})
_READ_PATHS = frozenset({"/v1/recall"})
"""POST calls that only read."""
_UNAVAILABLE_STATUSES = frozenset({502, 503, 504})
_MAX_RETRY_AFTER = 10.0
_CONNECT_TIMEOUT = 5.0
_STREAM_READ_TIMEOUT = 60.0
"""Seconds without data after which a stream counts as dead; a live one sends more often."""
_PIECE_BYTES = 64 * 1024
_JITTER = wait_random_exponential(multiplier=0.1, max=2.0)


@dataclass(frozen=True)
class ApiResponse:
    """A response. `body` is decoded JSON, or text if it is not JSON."""

    status: int
    body: Any
    headers: Mapping[str, str]


class _ResponseLost(Exception):
    """The call may have arrived; it may be made again."""


class HttpTransport:
    """Calls one gateway.

    `timeout`: seconds for one attempt. `max_attempts`: the most attempts of a call. A call is
    repeated if the gateway does not answer; calls that change something send an `Idempotency-Key`,
    so that effects happen once. After a 429, the call is repeated if there is capacity within ten
    seconds. `ca`: a PEM file of authorities to trust in addition to the system's.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        max_attempts: int = 4,
        agent: str = "reverie",
        user: str = "",
        ca: Path | str | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._timeout = timeout
        self.max_attempts = max_attempts
        self._headers = {**_key_header(key), "User-Agent": agent, **user_header(user)}
        # A gateway is often on this machine: no proxies of the environment.
        self._http = httpx2.AsyncClient(
            base_url=self.url,
            timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT),
            limits=httpx2.Limits(max_connections=100, keepalive_expiry=15.0),
            verify=url.startswith("https:") and create_tls_context(ca),
            trust_env=False,
        )
        self._owns_connections = True
        self._write_position: str | None = None

    def with_key(self, key: str) -> HttpTransport:
        """The same gateway with another key, over the connections of this one, which keeps them."""
        other = copy(self)
        other._headers = {**self._headers, **_key_header(key)}
        other._owns_connections, other._write_position = False, None
        return other

    async def __aenter__(self) -> HttpTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Gives back the connections, if they are its own."""
        if self._owns_connections:
            await self._http.aclose()

    async def call(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiResponse:
        """Returns the gateway's answer, even a refusal. Raises `Unavailable` if there is none."""
        is_read = method in _READ_METHODS or path in _READ_PATHS
        request_headers = dict(headers or {})
        if not is_read:
            request_headers.setdefault("Idempotency-Key", str(uuid4()))
        elif self._write_position is not None:
            request_headers.setdefault(POSITION_HEADER, self._write_position)
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.max_attempts),
            wait=_retry_delay,
            retry=retry_if_exception_type(_ResponseLost) | retry_if_result(_is_retryable),
            retry_error_callback=_last_outcome,
        )
        try:
            return await retrying(self._send_once, method, path, query, body, request_headers)
        except _ResponseLost as error:
            raise self._unavailable_error() from error

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[httpx2.Response]:
        """A successful answer, whose body is read within the block.

        Raises `Refused`, or `Unavailable` if the connection breaks.
        """
        request = self._build_request(method, path, query, headers)
        request.extensions["timeout"]["read"] = _STREAM_READ_TIMEOUT
        try:
            response = await self._http.send(request, stream=True)
            try:
                if response.status_code in _UNAVAILABLE_STATUSES:
                    raise self._unavailable_error()
                if response.status_code >= 300:
                    body = _decode_body(await response.aread())
                    raise build_api_error(response.status_code, body, f"{method} {path}")
                yield response
            finally:
                await response.aclose()
        except httpx2.TransportError as error:
            raise self._unavailable_error() from error

    async def upload(
        self, path: str, query: Query, source: bytes | IO[bytes], content_type: str, seconds: float
    ) -> ApiResponse:
        """Sends a file, once. Raises `Refused` and `Unavailable`."""
        content = source if isinstance(source, bytes) else _read_pieces(source)
        try:
            result = await self._exchange(
                "POST", path, query, {"Content-Type": content_type}, content, seconds
            )
        except (httpx2.TransportError, TimeoutError) as error:
            raise self._unavailable_error() from error
        if result.status >= 300:
            raise build_api_error(result.status, result.body, f"POST {path}")
        return result

    def _unavailable_error(self) -> Unavailable:
        return Unavailable(f"the gateway at {self.url}", "does `reverie up` run?")

    async def _send_once(
        self, method: str, path: str, query: Query | None, body: Any, headers: Mapping[str, str]
    ) -> ApiResponse:
        data = None if body is None else json.dumps(body).encode()
        type_header = {"Content-Type": "application/json"} if data is not None else {}
        try:
            response = await self._exchange(
                method, path, query, {**type_header, **headers}, data, self._timeout
            )
        except (httpx2.TransportError, TimeoutError) as error:
            raise _ResponseLost from error
        self._write_position = later_lsn(
            self._write_position, response.headers.get(POSITION_HEADER)
        )
        return response

    async def _exchange(
        self,
        method: str,
        path: str,
        query: Query | None,
        headers: Mapping[str, str],
        content: bytes | AsyncIterator[bytes] | None,
        seconds: float,
    ) -> ApiResponse:
        request = self._build_request(method, path, query, headers, content)
        async with asyncio.timeout(seconds):
            response = await self._http.send(request)
        return ApiResponse(response.status_code, _decode_body(response.content), response.headers)

    def _build_request(
        self,
        method: str,
        path: str,
        query: Query | None,
        headers: Mapping[str, str] | None,
        content: bytes | AsyncIterator[bytes] | None = None,
    ) -> httpx2.Request:
        """A request; None is left out of its query, and lists repeat their name."""
        params = {name: value for name, value in (query or {}).items() if value is not None}
        all_headers = {**self._headers, **(headers or {})}
        return self._http.build_request(
            method, path, params=params, headers=all_headers, content=content
        )


def _key_header(key: str) -> dict[str, str]:
    key = key.strip()
    if not key:
        raise InvalidInput("key", "is empty: give a key of this Reverie")
    if not (key.isascii() and key.isprintable()):
        # The key itself is not shown.
        raise InvalidInput("key", "holds a character that no header takes")
    return {"Authorization": f"Bearer {key}"}


async def _read_pieces(source: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(source.read, _PIECE_BYTES):
        yield piece


def _decode_body(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode("utf-8", "replace")


def _is_retryable(response: ApiResponse) -> bool:
    """Returns whether the same call may succeed soon.

    True for 409 if its duplicate is still in progress, and for 429 if there is capacity again soon.
    """
    is_in_flight = response.status == 409 and "Retry-After" in response.headers
    is_soon = response.status == 429 and _retry_after(response) <= _MAX_RETRY_AFTER
    return is_in_flight or is_soon or response.status in _UNAVAILABLE_STATUSES


def _retry_after(response: ApiResponse) -> float:
    """Returns the seconds that the gateway asks to wait; 0 if it does not."""
    header = response.headers.get("Retry-After", "0")
    return float(header) if header.isdigit() else 0.0


def _retry_delay(state: RetryCallState) -> float:
    """Returns the delay from `Retry-After` in seconds, with jitter."""
    outcome = state.outcome
    requested = 0.0
    if outcome is not None and not outcome.failed:
        requested = min(_retry_after(outcome.result()), _MAX_RETRY_AFTER)
    return requested + _JITTER(state)


def _last_outcome(state: RetryCallState) -> ApiResponse:
    """The last answer, or what the last try failed with."""
    assert state.outcome is not None
    response: ApiResponse = state.outcome.result()
    return response
