"""A running system for invalid requests, and the form that each refusal must have."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from yarl import URL

from tests.support.stack import Stack, eventually
from tests.support.tables import Tables

INSIDE = ("Traceback", "asyncpg", "psycopg", "SQLSTATE", "pydantic", "relation ", "libs/", 'File "')
"""What only somebody who sees our inside could say."""


MISSING = "01900000-0000-7000-8000-00000000dead"


SHA = "a" * 40


@dataclass(frozen=True)
class Place:
    """A tenant of a running system with one session and one memory in it."""

    stack: Stack
    tables: Tables
    session: str
    memory: str

    def filled(self, value: Any) -> Any:
        """The value with `$session` and `$memory` replaced by what stands."""
        if isinstance(value, str):
            return value.replace("$session", self.session).replace("$memory", self.memory)
        if isinstance(value, list):
            return [self.filled(one) for one in value]
        if isinstance(value, dict):
            return {self.filled(key): self.filled(one) for key, one in value.items()}
        return value

    async def settled(self) -> None:
        """Returns once the slow path has nothing left to write."""

        async def still() -> bool:
            return self.tables.idle()

        await eventually(still)

    async def send(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> tuple[int, str, bytes]:
        """Status, content type and body of the answer."""
        auth = {"Authorization": f"Bearer {self.stack.key}", **headers}
        url = URL(self.stack.url + self.filled(path), encoded=True)
        sent = None if data is None else BytesIO(data)
        async with self.stack.http.request(method, url, data=sent, headers=auth) as answer:
            return answer.status, answer.content_type, await answer.read()

    @asynccontextmanager
    async def unchanged(self) -> AsyncIterator[None]:
        """Whatever is sent meanwhile must leave no row behind."""
        await self.settled()
        before = self.tables.counts()
        yield
        assert self.tables.counts() == before

    async def all_refused(
        self, cases: Iterable[tuple[str, bytes]], headers: Mapping[str, str] = {}
    ) -> AsyncIterator[tuple[tuple[str, bytes], dict[str, Any]]]:
        """Each path and body with the problem document of its POST; none leaves a row behind."""
        async with self.unchanged():
            for path, data in cases:
                yield (path, data[:200]), problem(*await self.send("POST", path, data, headers))

    async def refused(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> dict[str, Any]:
        """The problem document of a call that must fail and leave no row behind."""
        async with self.unchanged():
            return problem(*await self.send(method, path, data, headers))


def problem(status: int, content_type: str, body: bytes) -> dict[str, Any]:
    """The document of a refusal, checked for what all of them have."""
    text = body.decode()
    assert 400 <= status < 500, (status, text)
    assert content_type == "application/problem+json"
    document: dict[str, Any] = json.loads(text)
    assert document["status"] == status
    assert document["type"] == f"urn:reverie:problem:{document['code']}"
    assert document["trace_id"]
    assert not [word for word in INSIDE if word in text], text
    return document


REMEMBER = {"content": "a thing to know", "scope": "project/shop"}


TURN = {"role": "user", "content": "hello"}


CHANGE: dict[str, Any] = {
    "project": "shop",
    "branch": "main",
    "after": SHA,
    "commits": [{"sha": SHA, "subject": "s", "committed_at": "2026-01-01T00:00:00Z"}],
    "files": [{"path": "src/a.py", "status": "modified", "hunks": [[1, 1, 1, 2]]}],
}


GOOD: dict[str, dict[str, Any]] = {
    "/v1/remember": REMEMBER,
    "/v1/remember/batch": {"items": [REMEMBER]},
    "/v1/turns": {"session": "$session", "turns": [TURN]},
    "/v1/sessions/start": {"agent": "claude", "project": "shop"},
    "/v1/sessions/$session/end": {"summary": "it went well"},
    "/v1/recall": {"query": "what stands?"},
    "/v1/dream": {"scope": "project/shop"},
    "/v1/git/changes": CHANGE,
}


POSTS = sorted(GOOD)


def names(document: Mapping[str, Any], field: str) -> bool:
    named = str(document.get("field"))
    return named == field or named.startswith(f"{field}.")
