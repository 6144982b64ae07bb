"""Pictures are stored beside memories that are there, and beside no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from reverie.domain.core.errors import NotFound
from reverie.store.memories.forgetting import ForgettingStore
from reverie.store.memories.pictures import PictureStore
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import Store, admin_rows, new, open_store_apart, write


@pytest.fixture
async def store(shared_database: DatabaseUrls) -> AsyncIterator[Store]:
    async with open_store_apart(shared_database) as made:
        yield made


async def test_a_picture_does_not_outlive_the_erasure_of_its_memory(store: Store) -> None:
    pictures = PictureStore(store.db)
    [memory] = await write(store, new("The shop in one picture."))
    assert await pictures.put(store.me, memory, b"1" * 32, "image/png", b"pixels")
    assert not await pictures.put(store.me, memory, b"1" * 32, "image/png", b"pixels")
    forget = "update memory set status = 'deleted' where id = %s returning id"
    admin_rows(store.admin_url, forget, memory)
    erased = await ForgettingStore(store.db).erase(store.me.tenant, memory)
    assert erased["picture"] == 1
    for gone in (memory, uuid4()):
        with pytest.raises(NotFound):
            await pictures.put(store.me, gone, b"2" * 32, "image/png", b"pixels")
    kept = "select count(*) from picture where tenant = %s"
    assert admin_rows(store.admin_url, kept, store.me.tenant) == [(0,)]
