"""Common parts of all client calls: requests, pagination, parameters and lazy imports.

`LazyModule` defers an import to its first use, so that importing the client stays cheap."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from reverie.domain.core.errors import Unavailable


class LazyModule:
    """A placeholder for a module, which is imported when an attribute is first used."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


if TYPE_CHECKING:
    from pathlib import Path

    from httpx2 import ServerSentEvent
    from pydantic import BaseModel

    from reverie.client.transport import ApiResponse, Query

Self = TypeVar("Self", bound="ClientBase")
BodyT = TypeVar("BodyT", bound="BaseModel")

PAGE_SIZE = 100
"""The page size of lists."""
_MAX_RECONNECT_DELAY = 5.0


class ClientBase:
    """A gateway that is called, and a key to it."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        max_attempts: int = 4,
        agent: str = "reverie-client",
        user: str = "",
        ca: Path | str | None = None,
    ) -> None:
        from reverie.client.transport import HttpTransport

        self._transport = HttpTransport(
            url,
            key,
            timeout=timeout,
            max_attempts=max_attempts,
            agent=agent,
            user=user,
            ca=ca,
        )

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Gives back the connections."""
        await self._transport.close()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: BaseModel | Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiResponse:
        """Any call of the REST interface. Raises `ApiError` on a status of 300 or above."""
        from reverie.client.errors import build_api_error

        json_body = None if body is None else _to_json(body)
        json_query = None if query is None else _to_json(query)
        response = await self._transport.call(method, path, json_query, json_body, headers)
        if response.status >= 300:
            raise build_api_error(response.status, response.body, f"{method} {path}")
        return response

    async def request(
        self,
        body_type: type[BodyT],
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: BaseModel | Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> BodyT:
        """The same, with the answer as the model `body_type`;

        fields it does not know are ignored.
        """
        response = await self.call(method, path, query=query, body=body, headers=headers)
        return body_type.model_validate(response.body)

    async def paginate(
        self, page_type: type[BaseModel], path: str, query: Query | None = None
    ) -> AsyncIterator[Any]:
        """All items of a list, page by page as they are taken."""
        page_query = {"limit": PAGE_SIZE, **(query or {})}
        while True:
            page: Any = await self.request(page_type, "GET", path, query=page_query)
            for item in page.items:
                yield item
            if page.next is None:
                return
            page_query["cursor"] = page.next

    async def _follow_events(
        self, path: str, query: Query, after: str | None
    ) -> AsyncIterator[ServerSentEvent]:
        """Yields events without end, from now on or from the position `after`.

        A broken connection is reopened and resumes. Raises `Unavailable` once as many attempts as
        the client allows have failed in a row.
        """
        from httpx2 import EventSource

        failures = 0
        while True:
            headers = {"Last-Event-ID": after} if after else {}
            try:
                async with self._transport.stream("GET", path, query, headers) as response:
                    async for event in EventSource(response, max_event_size=None):
                        after, failures = event.id, 0
                        if event.data:
                            yield event
            except Unavailable:
                failures += 1
                if failures >= self._transport.max_attempts:
                    raise
            await asyncio.sleep(random.uniform(0.05, min(0.2 * 2**failures, _MAX_RECONNECT_DELAY)))  # noqa: S311


def with_key(client: Self, key: str) -> Self:
    """The same gateway with another key, over the same connections.

    They stay open until `client` is closed.
    """
    other = copy(client)
    other._transport = client._transport.with_key(key)
    return other


def drop_none(**fields: Any) -> dict[str, Any]:
    """The fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def quote_segment(value: object) -> str:
    """An id or a name as a part of a path."""
    return quote(str(value), safe="")


def if_match_header(version: int | None) -> dict[str, str]:
    """Builds the header of an edit that applies only if `version` is current."""
    return {} if version is None else {"If-Match": f'"{version}"'}


def _to_json(body: Any) -> Any:
    """Encodes as JSON; values may include ids, times and models."""
    from pydantic import BaseModel
    from pydantic_core import to_jsonable_python

    if isinstance(body, BaseModel):
        return body.model_dump(mode="json", exclude_unset=True, by_alias=True)
    return to_jsonable_python(dict(body), by_alias=True)
