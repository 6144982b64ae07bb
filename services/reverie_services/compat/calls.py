"""A call of a compatibility interface, and the gateway's calls that answer it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from multidict import MultiMapping
from pydantic import BaseModel

from reverie.domain.core.errors import NotFound
from reverie.runtime.http.validation import parse_query, parse_value
from reverie_services.in_process_rest import InProcessRestClient

PAGE = 100

ModelT = TypeVar("ModelT", bound=BaseModel)


class CompatRefusal(Exception):
    """This gateway refused a call; the client gets its answer."""

    def __init__(self, status: int, problem: Any) -> None:
        super().__init__(status)
        self.status, self.problem = status, problem


@dataclass(frozen=True)
class CompatCall:
    """A call of the other interface. `path` has neither prefix nor slash at its end."""

    method: str
    path: str
    query: MultiMapping[str]
    body: Mapping[str, Any]
    rest: InProcessRestClient

    def parse_body(self, model: type[ModelT]) -> ModelT:
        """The body as `model`. Raises `InvalidInput` with the field."""
        return parse_value(model, self.body)

    def parse_query(self, model: type[ModelT]) -> ModelT:
        """The query as `model`. Raises `InvalidInput` with the name."""
        query = parse_query(model, self.query)
        assert query is not None
        return query

    async def ask(self, method: str, path: str, query: Any = None, body: Any = None) -> Any:
        """The answer of a call of this gateway. Raises `CompatRefusal`."""
        status, answer = await self.rest(method, path, query, body)
        if status >= 400:
            raise CompatRefusal(status, answer)
        return answer

    async def remember(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Stores memories. Raises `CompatRefusal` for the first that is refused."""
        answer = await self.ask("POST", "/v1/remember/batch", body={"items": items})
        for item in answer["items"]:
            if "code" in item:
                raise CompatRefusal(item["status"], item)
        stored: list[dict[str, Any]] = answer["items"]
        return stored

    async def memories(self, query: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """All memories that pass, the newest first; without a `status`, only active ones."""
        page_query = {"limit": PAGE, "status": "active", **query}
        while True:
            page = await self.ask("GET", "/v1/memories", page_query)
            for memory in page["items"]:
                yield memory
            if not page.get("next"):
                return
            page_query["cursor"] = page["next"]

    async def forget(self, body: Mapping[str, Any]) -> int:
        """Forgets all memories of a scope that pass, of any status; returns how many."""
        count, more = 0, True
        while more:
            answer = await self.ask("POST", "/v1/memories/forget", body=body)
            count += answer["forgotten"]
            more = answer["more"]
        return count

    def no_route(self) -> NotFound:
        """The answer to an unknown path."""
        return NotFound("route", f"{self.method} {self.path} below /compat")
