"""The clients of the commands: a small HTTP client that loads fast, and the asynchronous one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from reverie.agent.gateway.http_client import GatewayConnection
from reverie.agent.gateway.user_detection import detect_user
from reverie.cli.app.gateway_settings import endpoint_from_settings, read_gateway_settings
from reverie.domain.core.errors import InvalidInput, ReverieError, Unavailable

if TYPE_CHECKING:
    from reverie.client import AsyncReverie
    from reverie.runtime.settings.settings import Settings

MAX_PAGE_SIZE = 200
"""The largest page that the gateway returns."""


@dataclass(eq=False)
class GatewayError(ReverieError):
    """{detail}"""

    detail: str
    problem: Mapping[str, Any]


class GatewayClient:
    """A gateway with its key, and the project of the current folder."""

    def __init__(
        self,
        url: str,
        key: str,
        timeout: float,
        project: str | None,
        ca: str = "",
        user: str = "",
    ) -> None:
        self.project = project
        self._connection = GatewayConnection(url, key, timeout, ca, "reverie-cli", user)

    @property
    def url(self) -> str:
        """The base URL of the gateway."""
        return self._connection.url

    @property
    def project_scope(self) -> str | None:
        """The scope of the folder's project."""
        return f"project/{self.project}" if self.project else None

    def request(
        self,
        method: str,
        path: str,
        query: Any = None,
        body: Any = None,
        version: int | None = None,
    ) -> Any:
        """The decoded response. `version` is the expected current version (If-Match).

        Raises `GatewayError` and `Unavailable`.
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
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Status and text of the response. Raises `Unavailable`."""
        try:
            status, data = self._connection.send(method, target, body, headers)
        except (OSError, ValueError) as error:
            hint = "it took too long;" if isinstance(error, TimeoutError) else "does it run?"
            raise Unavailable(
                f"the gateway at {self._connection.url}", f"{hint} see `reverie status`"
            ) from None
        return status, data.decode("utf-8", "replace")

    def stream_events(self, path: str, query: Any) -> Iterator[tuple[str | None, Any]]:
        """Yields the id and the data of each event; a pair of None for the open connection.

        Raises `GatewayError` and `Unavailable`.
        """
        try:
            lines = self._connection.stream_lines(f"{path}{_encode_query(query)}")
            status, _ = next(lines)
            if status >= 400:
                raise error_from_response(status, json.loads(b"".join(line for _, line in lines)))
            yield None, None
            yield from _parse_events(line for _, line in lines)
        except (OSError, ValueError):
            raise Unavailable(
                f"the gateway at {self._connection.url}", "the stream broke off"
            ) from None

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
        """The full id of a memory, given its short form."""
        if _is_full_id(id):
            return id
        return str(self.request("GET", f"/v1/memories/{quote_segment(id)}")["id"])

    def resolve_session_id(self, id: str | None) -> str | None:
        """The full id of a session, given its end, its beginning or the agent's own id."""
        if id is None or _is_full_id(id):
            return id
        return str(self.request("GET", "/v1/sessions", {"session": id})["items"][0]["id"])


def create_client(
    home: Path | None, sets: Sequence[str], project: str | None = None
) -> GatewayClient:
    """A client of the configured gateway, else of the one that runs on the home folder."""
    gateway = read_gateway_settings(home, sets)
    return GatewayClient(
        gateway.url,
        gateway.key,
        gateway.timeout,
        project or gateway.project,
        gateway.ca,
        gateway.user,
    )


def open_client(settings: Settings, agent: str) -> AsyncReverie:
    """A client of the gateway that these settings select. Raises as `resolve_endpoint`."""
    from reverie.client import AsyncReverie

    url, key = endpoint_from_settings(settings)
    timeout, ca = settings.request_timeout, settings.trusted_ca_file
    user = detect_user(settings.user or "", os.environ)
    return AsyncReverie(url, key, timeout=timeout, agent=agent, user=user, ca=ca)


def error_from_response(status: int, problem: Any) -> GatewayError:
    """The error in a problem document; a proxy's error page becomes one too."""
    if not isinstance(problem, dict) or "code" not in problem:
        code = "unavailable" if status in {502, 503, 504} else "malformed"
        problem = {"code": code, "status": status, "detail": f"the gateway answered {status}"}
    return GatewayError(str(problem.get("detail")), problem)


def quote_segment(text: str) -> str:
    """A part of a path, percent-encoded. Raises `InvalidInput` if it is empty."""
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
