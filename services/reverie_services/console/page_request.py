"""A request of a signed-in person: its parameters, and the REST calls with their rights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from multidict import MultiDict, MultiMapping
from yarl import URL

from reverie.contracts.events import is_position
from reverie.domain.access.principals import KeyRole, Principal
from reverie.domain.redaction.redactor import RedactorLoader
from reverie.mcp.rest_calls import RestCallError, call_rest, call_rest_any
from reverie_services.console.requests import HOME
from reverie_services.in_process_rest import InProcessRestClient

PageValues = dict[str, Any]
"""The values that a template is rendered with."""


@dataclass(frozen=True)
class PageRequest:
    """A signed-in person's request. `values`: variables of the path; `form`, `files`: posted."""

    url: URL
    principal: Principal
    rest: InProcessRestClient
    language: str
    csrf_token: str
    load_redactor: RedactorLoader
    values: Mapping[str, str] = field(default_factory=dict)
    form: MultiMapping[str] = field(default_factory=lambda: MultiDict[str]())
    files: Sequence[tuple[str, bytes]] = ()

    @property
    def query(self) -> MultiMapping[str]:
        """The query of the page."""
        return self.url.query

    def ask(self, name: str) -> str | None:
        """A value of the query, None if it is empty."""
        return (self.url.query.get(name) or "").strip() or None

    def number(self, name: str, default: int, maximum: int) -> int:
        """A number from the query between 0 and `maximum`."""
        text = self.ask(name) or ""
        return min(int(text), maximum) if text.isascii() and text.isdigit() else default

    def position(self, name: str) -> int | None:
        """A position in a stream from the query. 0 is the start of the stream."""
        text = self.ask(name) or ""
        return int(text) if is_position(text) else None

    async def get(self, path: str, /, **query: Any) -> dict[str, Any]:
        """The body of a GET call. Raises `RestCallError`."""
        return await call_rest(self.rest, "GET", path, query)

    async def try_get(self, path: str, /, **query: Any) -> dict[str, Any] | None:
        """The body of a GET call; None if it is forbidden or fails."""
        try:
            return await self.get(path, **query)
        except RestCallError:
            return None

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        version: str | None = None,
    ) -> Any:
        """The body of a call that changes something; `version`: the expected current version."""
        headers = {"If-Match": f'"{version}"'} if version else {}
        return await call_rest_any(self.rest, method, path, query, body, headers)

    def may_write(self, scope: str) -> bool:
        """Whether forms that change memories of this scope are shown."""
        return self.principal.may_write(scope)

    @property
    def is_admin(self) -> bool:
        """Whether the pages for administrators are linked. Each call checks the right itself."""
        return self.principal.role is KeyRole.ADMIN

    def link(self, **changes: Any) -> str:
        """The address of this page with other values in its query; None removes one."""
        query = MultiDict(self.url.query)
        for name, value in changes.items():
            query.popall(name, None)
            if value is not None:
                query.add(name, str(value))
        return str(self.url.with_query(query))


def split_list(text: str) -> list[str]:
    """The items of a list that somebody wrote with commas."""
    return [item.strip() for item in text.split(",") if item.strip()]


def read_time(text: str | None) -> str | None:
    """Parses a time; without a zone it is UTC, as all times of the console."""
    if text and "T" in text and not text.endswith("Z") and "+" not in text:
        return f"{text}Z"
    return text


def memory_path(memory_id: str) -> str:
    """The REST path of a memory."""
    return f"/v1/memories/{quote(memory_id, safe='')}"


def page_path(*parts: str) -> str:
    """The address of a page of the console."""
    return "/".join([HOME, *(quote(part, safe="") for part in parts)])
