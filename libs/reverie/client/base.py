"""What all calls of the client are made of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pydantic import BaseModel

    from reverie.client.calls import Answered, Query

Self = TypeVar("Self", bound="Base")
Kind = TypeVar("Kind", bound="BaseModel")

PAGE = 100
"""How many items a list asks for at a time."""


class Base:
    """A gateway that is called, and a key to it."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        tries: int = 4,
        agent: str = "reverie-client",
        ca: Path | str | None = None,
    ) -> None:
        from reverie.client.calls import Caller

        self._caller = Caller(url, key, timeout=timeout, tries=tries, agent=agent, ca=ca)

    async def __aenter__(self: Self) -> Self:
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
        from reverie.client.errors import refused

        sent = None if body is None else _json(body)
        asked = None if query is None else _json(query)
        answer = await self._caller.call(method, path, asked, sent, headers)
        if answer.status >= 400:
            raise refused(answer.status, answer.body, f"{method} {path}")
        return answer

    async def ask(
        self,
        kind: type[Kind],
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: BaseModel | Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Kind:
        """The same, with the answer as the model `kind`; fields it does not know are ignored."""
        answer = await self.call(method, path, query=query, body=body, headers=headers)
        return kind.model_validate(answer.body)

    async def walk(
        self, kind: type[BaseModel], path: str, query: Query | None = None
    ) -> AsyncIterator[Any]:
        """All items of a list, page by page as they are taken."""
        asked = {"limit": PAGE, **(query or {})}
        while True:
            page: Any = await self.ask(kind, "GET", path, query=asked)
            for item in page.items:
                yield item
            if page.next is None:
                return
            asked["cursor"] = page.next


def given(**fields: Any) -> dict[str, Any]:
    """The fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def part(value: object) -> str:
    """An id or a name as a part of a path."""
    return quote(str(value), safe="")


def expecting(version: int | None) -> dict[str, str]:
    """The header of an edit that only holds where `version` stands."""
    return {} if version is None else {"If-Match": f'"{version}"'}


def _json(body: Any) -> Any:
    """As JSON; ids, times and models among the values too."""
    from pydantic import BaseModel
    from pydantic_core import to_jsonable_python

    if isinstance(body, BaseModel):
        return body.model_dump(mode="json", exclude_unset=True, by_alias=True)
    return to_jsonable_python(dict(body), by_alias=True)
