"""Postings packed into one number: the largest values fit, deletion finds them by an index."""

from __future__ import annotations

import psycopg
import pytest

from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import PATH, admin_rows, app_connection, new, open_store, write

READ = (
    "select sum(pg_stat_get_xact_tuples_returned(indexrelid))::int from pg_index"
    " where indrelid in (select oid from pg_class where relname like 'posting_entry%')"
)


@pytest.mark.parametrize("doc", [1, 2**35 - 1])
def test_a_posting_can_hold_the_largest_count_and_length(database: DatabaseUrls, doc: int) -> None:
    with psycopg.connect(database.admin_url, options=PATH) as connection:
        connection.execute(
            "insert into posting_entry values (7, -5, pack_posting(%s, 300, 2000000))", (doc,)
        )
        found = connection.execute("select * from posting where doc = %s", (doc,)).fetchall()
        connection.rollback()
    assert found == [(7, -5, doc, 255, 2**20 - 1)]


def test_a_tsvector_holds_no_more_positions_of_a_lexeme_than_a_posting(
    shared_database: DatabaseUrls,
) -> None:
    most = "select max(cardinality(w.positions)) from unnest(to_tsvector('english', %s)) w"
    assert admin_rows(shared_database.admin_url, most, "heron " * 1000) == [(255,)]


async def test_the_words_of_one_memory_are_erased_without_reading_all(
    database: DatabaseUrls,
) -> None:
    async with open_store(database) as store:
        [one, *_] = await write(store, *(new(f"the pool of worker {n}") for n in range(400)))
        admin_rows(database.admin_url, "analyze posting_entry")
        async with app_connection(database.service_url, store.me.tenant) as connection:
            await connection.execute("begin")
            gone = await connection.fetchval(
                "select erase_postings($1, 'x.id = any($2)', $2, null)", store.me.tenant, [one]
            )
            read = await connection.fetchval(READ)
    assert (gone, read < 20) == (3, True), read
