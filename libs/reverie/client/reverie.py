"""`AsyncReverie`: typed calls to a gateway."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, TypeVar

from pydantic import BaseModel

from reverie.client.calls import Answered, Caller, Query
from reverie.client.errors import Refused, problem_in
from reverie.contracts.context import ContextAnswer
from reverie.contracts.memories import MemoryDetail, Remember, Remembered
from reverie.contracts.recall import Recall, RecallAnswer

Kind = TypeVar("Kind", bound=BaseModel)


class AsyncReverie:
    """Reverie for code that awaits.

    `url` is the gateway's, `timeout` in seconds for one try, `tries` how often a call is made at
    most where that is safe. Every call raises `Refused` where the gateway refuses it and
    `Unavailable` where it does not answer.

        async with AsyncReverie("http://127.0.0.1:3456", key) as reverie:
            await reverie.remember("Deploys go through staging first.", kind="convention")
            found = await reverie.recall("how do we deploy?")
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        tries: int = 4,
        agent: str = "reverie-client",
    ) -> None:
        self._caller = Caller(url, key, timeout=timeout, tries=tries, agent=agent)

    async def __aenter__(self) -> AsyncReverie:
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
        await self._caller.close()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: BaseModel | Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """Any call of the REST interface. Raises `Refused` on a status of 400 or above."""
        sent = (
            body.model_dump(mode="json", exclude_unset=True, by_alias=True)
            if isinstance(body, BaseModel)
            else body
        )
        answer = await self._caller.call(method, path, query, sent, headers)
        if answer.status >= 400:
            raise Refused(problem_in(answer.status, answer.body))
        return answer

    async def ask(
        self,
        kind: type[Kind],
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: BaseModel | Mapping[str, Any] | None = None,
    ) -> Kind:
        """The same, with the answer as the model `kind`; fields it does not know are ignored."""
        answer = await self.call(method, path, query=query, body=body)
        return kind.model_validate(answer.body)

    async def remember(self, content: str, **fields: Any) -> Remembered:
        """Stores a memory; `fields` are those of `Remember`, as `kind`, `scope`, `tags`, `key`."""
        body = Remember.model_validate({"content": content, **fields}, strict=False)
        return await self.ask(Remembered, "POST", "/v1/remember", body=body)

    async def recall(self, query: str, **fields: Any) -> RecallAnswer:
        """The memories that answer a question; `fields` are those of `Recall`, as `limit`."""
        body = Recall.model_validate({"query": query, **fields}, strict=False)
        return await self.ask(RecallAnswer, "POST", "/v1/recall", body=body)

    async def context(self, **query: Any) -> ContextAnswer:
        """What to know before starting: of a `project`, a `session`, or all the key may read."""
        return await self.ask(ContextAnswer, "GET", "/v1/context", query=query)

    async def memory(self, id: str) -> MemoryDetail:
        """One memory with its neighbours; the id may be short."""
        return await self.ask(MemoryDetail, "GET", f"/v1/memories/{id}")
