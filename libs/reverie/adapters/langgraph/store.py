"""LangGraph's long-term store: items are documents, and their texts are memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph.store.base import BaseStore, Op, Result, TTLConfig

from reverie.adapters.langgraph.blocking import SyncOrAsync
from reverie.adapters.langgraph.items import ItemDocuments
from reverie.client import AsyncReverie, Reverie


class ReverieStore(BaseStore):
    """Keeps items in `scope`; that of the key, unless it is given.

    The texts of an item are also remembered, so recall finds them, and `search(query=…)` orders
    items by recall. `fields` says which texts: paths such as `text` or `facts[*].text`. Items that
    end are not remembered. Their time runs from the last write: reading does not prolong it.
    """

    supports_ttl = True

    def __init__(
        self,
        reverie: AsyncReverie | Reverie,
        *,
        scope: str | None = None,
        fields: Sequence[str] = ("$",),
        default_ttl: float | None = None,
    ) -> None:
        self._calls = SyncOrAsync(reverie)
        self._items = ItemDocuments(self._calls.client, scope, tuple(fields))
        self.ttl_config = TTLConfig(default_ttl=default_ttl, refresh_on_read=False)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The results of operations, in order. All see what was there before the batch."""
        return await self._calls.run(self._items.run(list(ops)))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """As `abatch`."""
        return self._calls.run_blocking(self._items.run(list(ops)))
