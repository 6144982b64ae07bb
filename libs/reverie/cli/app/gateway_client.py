"""A small HTTP client for the commands: one REST call or event stream to the gateway."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from reverie.domain.core.errors import InvalidInput, ReverieError, Unavailable

if TYPE_CHECKING:
    from http.client import HTTPConnection

MAX_PAGE_SIZE = 200
"""The largest page there is."""


@dataclass(eq=False)
class GatewayError(ReverieError):
    """{detail}"""

    detail: str
    problem: Mapping[str, Any]


class GatewayClient:
    """Where the commands of one run ask: the gateway, the key to it, and the folder's project."""

    def __init__(
        self, url: str, key: str, timeout: float, project: str | None, ca: Path | None = None
    ) -> None:
        self.url = url.rstrip("/")
        self.project = project
        self._key = key
        self._timeout = timeout
        self._ca = ca

    def request(
        self,
        method: str,
        path: str,
        query: Any = None,
        body: Any = None,
        version: int | None = None,
    ) -> Any:
        """The decoded answer. `version`: what must stand, as If-Match says it.

        Raises `GatewayError`, and `Unavailable` where none comes.
        """
        headers = {} if version is None else {"If-Match": f'"{version}"'}
        status, text = self.send(method, f"{path}{_encode_query(query)}", body, headers)
        try:
            document = json.loads(text) if text else None
        except ValueError:
            document = text
        if status >= 400:
            raise error_from_response(status, document)
        return document

    def send(
        self,
        method: str,
        target: str,
        body: Any = None,
        extra_headers: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Status and text of the answer. Raises `Unavailable`."""
        from http.client import HTTPException

        headers = {"Authorization": f"Bearer {self._key}", "User-Agent": "reverie-cli"}
        headers |= extra_headers or {}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        connection = self._connect()
        try:
            connection.request(method, f"{urlsplit(self.url).path}{target}", data, headers)
            response = connection.getresponse()
            return response.status, response.read().decode("utf-8", "replace")
        except (OSError, HTTPException) as error:
            hint = "it took too long" if isinstance(error, TimeoutError) else "does it run?"
            raise Unavailable(
                f"the gateway at {self.url}", f"{hint} see `reverie status`"
            ) from None
        finally:
            connection.close()

    def stream_events(self, path: str, query: Any) -> Iterator[tuple[str | None, Any]]:
        """The id and the data of each event of a stream, until it ends; of a sign of life no data.

        Raises `GatewayError` and `Unavailable`.
        """
        from http.client import HTTPException

        headers = {"Authorization": f"Bearer {self._key}", "Accept": "text/event-stream"}
        connection = self._connect()
        try:
            connection.request(
                "GET", f"{urlsplit(self.url).path}{path}{_encode_query(query)}", None, headers
            )
            response = connection.getresponse()
            if response.status >= 400:
                raise error_from_response(response.status, json.loads(response.read()))
            yield None, None
            yield from _parse_events(response)
        except (OSError, HTTPException, ValueError):
            raise Unavailable(f"the gateway at {self.url}", "the stream broke off") from None
        finally:
            connection.close()

    def list_items(self, path: str, query: Mapping[str, Any], limit: int) -> list[Any]:
        """The first `limit` items of a list."""
        page_query = {**query, "limit": min(limit, MAX_PAGE_SIZE)}
        page = self.request("GET", path, page_query)
        items = list(page["items"])
        while page.get("next") and len(items) < limit:
            page = self.request("GET", path, {**page_query, "cursor": page["next"]})
            items += page["items"]
        return items[:limit]

    def resolve_memory_id(self, id: str) -> str:
        """The full id that a short one means."""
        return (
            id
            if _is_full_id(id)
            else str(self.request("GET", f"/v1/memories/{quote_segment(id)}")["id"])
        )

    def resolve_session_id(self, id: str) -> str:
        """The full id of a session that its end, its beginning or the agent's own name means."""
        if _is_full_id(id):
            return id
        return str(self.request("GET", "/v1/sessions", {"session": id})["items"][0]["id"])

    def resolve_dream_id(self, id: str) -> str:
        """The full id of a dream that its end or its beginning means. Raises `InvalidInput` where
        it
        means several, or none of the latest."""
        if _is_full_id(id):
            return id
        recent = [candidate["id"] for candidate in self.list_items("/v1/dreams", {}, MAX_PAGE_SIZE)]
        matches = [candidate for candidate in recent if _matches_id(id, candidate)]
        if len(matches) != 1:
            reason = "means several" if matches else "is none of the latest"
            raise InvalidInput("dream", f"{id!r} {reason}: see `reverie dream history`")
        return str(matches[0])

    def _connect(self) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        url = urlsplit(self.url)
        address, timeout = (url.hostname or "", url.port), self._timeout
        if url.scheme != "https":
            return HTTPConnection(*address, timeout=timeout)
        from reverie.contracts.tls import create_tls_context

        return HTTPSConnection(*address, timeout=timeout, context=create_tls_context(self._ca))


def create_client(
    home: Path | None, sets: Sequence[str] | None, project: str | None = None
) -> GatewayClient:
    """The gateway that is set, with its key; else the one that runs on the home folder."""
    from reverie.cli.app.gateway_discovery import discover_gateway

    gateway = discover_gateway(home, sets)
    return GatewayClient(
        gateway.url, gateway.key, gateway.timeout, project or gateway.project, gateway.ca
    )


def error_from_response(status: int, problem: Any) -> GatewayError:
    """What the gateway refused, from its problem document; a proxy's page is none."""
    if not isinstance(problem, dict) or "code" not in problem:
        code = "unavailable" if status in {502, 503, 504} else "malformed"
        problem = {"code": code, "status": status, "detail": f"the gateway answered {status}"}
    return GatewayError(str(problem.get("detail")), problem)


def quote_segment(text: str) -> str:
    """A part of a path, as an address takes it. Raises `InvalidInput` where it is empty."""
    if not text.strip():
        raise InvalidInput("id", "is empty")
    return quote(text.strip(), safe="")


def _parse_events(lines: Iterable[bytes]) -> Iterator[tuple[str | None, Any]]:
    """The events in the lines of a stream."""
    id, data = None, None
    for line in lines:
        name, _, value = line.decode().rstrip("\r\n").partition(": ")
        if name == "id":
            id = value
        elif name == "data":
            data = json.loads(value)
        elif not name and (id or data):
            yield id, data
            id, data = None, None


def _matches_id(fragment: str, id: str) -> bool:
    """Whether a few digits are the end of an id, or its beginning."""
    full, digits = id.replace("-", ""), fragment.replace("-", "").lower()
    return len(digits) >= 4 and (full.endswith(digits) or full.startswith(digits))


def _is_full_id(id: str) -> bool:
    return len(id.strip().replace("-", "")) == 32


def _encode_query(query: Any) -> str:
    if not query:
        return ""
    entries = query.items() if isinstance(query, Mapping) else query
    pairs = [(name, value) for name, value in entries if value is not None]
    parameters = [
        (name, str(item).lower() if isinstance(item, bool) else str(item))
        for name, value in pairs
        for item in (value if isinstance(value, (list, tuple)) else [value])
    ]
    return f"?{urlencode(parameters)}" if parameters else ""
