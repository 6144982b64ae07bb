"""One REST call to the gateway of this folder, with nothing imported that a person waits for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from reverie.domain.errors import Invalid, ReverieError, Unavailable

if TYPE_CHECKING:
    from http.client import HTTPConnection

MOST_SHOWN = 200
"""The largest page there is."""


@dataclass(eq=False)
class Refusal(ReverieError):
    """{detail}"""

    detail: str
    problem: Mapping[str, Any]


class Desk:
    """Where the commands of one run ask: the gateway, the key to it, and the folder's project."""

    def __init__(
        self, url: str, key: str, seconds: float, project: str | None, ca: Path | None = None
    ) -> None:
        self.url = url.rstrip("/")
        self.project = project
        self._key = key
        self._seconds = seconds
        self._ca = ca

    def ask(
        self,
        method: str,
        path: str,
        query: Any = None,
        body: Any = None,
        version: int | None = None,
    ) -> Any:
        """The decoded answer. `version`: what must stand, as If-Match says it.

        Raises `Refusal`, and `Unavailable` where none comes.
        """
        held = {} if version is None else {"If-Match": f'"{version}"'}
        status, text = self.fetch(method, f"{path}{_query(query)}", body, held)
        try:
            found = json.loads(text) if text else None
        except ValueError:
            found = text
        if status >= 400:
            raise refusal(status, found)
        return found

    def fetch(
        self, method: str, target: str, body: Any = None, more: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Status and text of the answer. Raises `Unavailable`."""
        from http.client import HTTPException

        headers = {"Authorization": f"Bearer {self._key}", "User-Agent": "reverie-cli"}
        headers |= more or {}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        wire = self._wire()
        try:
            wire.request(method, f"{urlsplit(self.url).path}{target}", data, headers)
            answer = wire.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        except (OSError, HTTPException) as error:
            why = "it took too long" if isinstance(error, TimeoutError) else "does it run?"
            raise Unavailable(f"the gateway at {self.url}", f"{why} see `reverie status`") from None
        finally:
            wire.close()

    def events(self, path: str, query: Any) -> Iterator[tuple[str | None, Any]]:
        """The id and the data of each event of a stream, until it ends; of a sign of life no data.

        Raises `Refusal` and `Unavailable`.
        """
        from http.client import HTTPException

        headers = {"Authorization": f"Bearer {self._key}", "Accept": "text/event-stream"}
        wire = self._wire()
        try:
            wire.request("GET", f"{urlsplit(self.url).path}{path}{_query(query)}", None, headers)
            answer = wire.getresponse()
            if answer.status >= 400:
                raise refusal(answer.status, json.loads(answer.read()))
            yield None, None
            yield from _events(answer)
        except (OSError, HTTPException, ValueError):
            raise Unavailable(f"the gateway at {self.url}", "the stream broke off") from None
        finally:
            wire.close()

    def pages(self, path: str, query: Mapping[str, Any], most: int) -> list[Any]:
        """The first `most` items of a list."""
        asked = {**query, "limit": min(most, MOST_SHOWN)}
        page = self.ask("GET", path, asked)
        found = list(page["items"])
        while page.get("next") and len(found) < most:
            page = self.ask("GET", path, {**asked, "cursor": page["next"]})
            found += page["items"]
        return found[:most]

    def memory(self, id: str) -> str:
        """The full id that a short one means."""
        return id if _is_full(id) else str(self.ask("GET", f"/v1/memories/{part(id)}")["id"])

    def session(self, id: str) -> str:
        """The full id of a session that its end, its beginning or the agent's own name means."""
        if _is_full(id):
            return id
        return str(self.ask("GET", "/v1/sessions", {"session": id})["items"][0]["id"])

    def dream(self, id: str) -> str:
        """The full id of a dream that its end or its beginning means. Raises `Invalid` where it
        means several, or none of the latest."""
        if _is_full(id):
            return id
        latest = [one["id"] for one in self.pages("/v1/dreams", {}, MOST_SHOWN)]
        found = [one for one in latest if _means(id, one)]
        if len(found) != 1:
            fits = "means several" if found else "is none of the latest"
            raise Invalid("dream", f"{id!r} {fits}: see `reverie dream history`")
        return str(found[0])

    def _wire(self) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        where = urlsplit(self.url)
        place, seconds = (where.hostname or "", where.port), self._seconds
        if where.scheme != "https":
            return HTTPConnection(*place, timeout=seconds)
        from reverie.contracts.trust import trusting

        return HTTPSConnection(*place, timeout=seconds, context=trusting(self._ca))


def desk(home: Path | None, sets: Sequence[str] | None, project: str | None = None) -> Desk:
    """The gateway that is set, with its key; else the one that runs on the home folder."""
    from reverie.cli.near import near

    found = near(home, sets)
    return Desk(found.url, found.key, found.seconds, project or found.project, found.ca)


def refusal(status: int, found: Any) -> Refusal:
    """What the gateway refused, from its problem document; a proxy's page is none."""
    if not isinstance(found, dict) or "code" not in found:
        code = "unavailable" if status in {502, 503, 504} else "malformed"
        found = {"code": code, "status": status, "detail": f"the gateway answered {status}"}
    return Refusal(str(found.get("detail")), found)


def part(text: str) -> str:
    """A part of a path, as an address takes it. Raises `Invalid` where it is empty."""
    if not text.strip():
        raise Invalid("id", "is empty")
    return quote(text.strip(), safe="")


def _events(lines: Iterable[bytes]) -> Iterator[tuple[str | None, Any]]:
    """The events in the lines of a stream."""
    id, data = None, None
    for raw in lines:
        name, _, value = raw.decode().rstrip("\r\n").partition(": ")
        if name == "id":
            id = value
        elif name == "data":
            data = json.loads(value)
        elif not name and (id or data):
            yield id, data
            id, data = None, None


def _means(short: str, id: str) -> bool:
    """Whether a few digits are the end of an id, or its beginning."""
    full, asked = id.replace("-", ""), short.replace("-", "").lower()
    return len(asked) >= 4 and (full.endswith(asked) or full.startswith(asked))


def _is_full(id: str) -> bool:
    return len(id.strip().replace("-", "")) == 32


def _query(query: Any) -> str:
    if not query:
        return ""
    given = query.items() if isinstance(query, Mapping) else query
    pairs = [(name, value) for name, value in given if value is not None]
    told = [
        (name, str(one).lower() if isinstance(one, bool) else str(one))
        for name, value in pairs
        for one in (value if isinstance(value, (list, tuple)) else [value])
    ]
    return f"?{urlencode(told)}" if told else ""
