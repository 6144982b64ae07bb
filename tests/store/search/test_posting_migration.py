"""Packed postings hold what the former ones held, during and after the migration."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from reverie.store.db.migrate import migrate
from reverie.testing.servers import DatabaseUrls
from tests.support.previous_release import first_schema, migrated
from tests.support.store_setup import PATH, admin_rows, app_connection, new, open_store, write

BEFORE, BESIDE, COPIED = "0145", "0146", "0147"
READ = (
    "select sum(pg_stat_get_xact_tuples_returned(indexrelid))::int from pg_index"
    " where indrelid in (select oid from pg_class where relname like 'posting_entry%')"
)
WIDE = "select term >> 32, doc, tf, len from {} order by 1, 2, 3, 4"
NARROW = "select term, doc, tf, len from {} order by 1, 2, 3, 4"
DOCS = "select doc from memory where words <> '' order by doc"
DROPPED = "select drop_words(1, m.doc, m.words) from memory m where m.doc = %s"
ADDED = "select index_words(1, m.doc, m.words, m.terms) from memory m where m.doc = %s"
OF_DOC = "select * from posting_entry where entry >> 28 = %s"


def _found(url: str, query: str) -> dict[str, list[tuple[int, ...]]]:
    return {name: admin_rows(url, query.format(name)) for name in ("posting", "turn_posting")}


def test_what_was_posted_before_an_upgrade_is_posted_after_it(
    empty_database: DatabaseUrls, tmp_path: Path
) -> None:
    url = empty_database.admin_url
    first_schema(url, tmp_path)
    migrated(url, tmp_path / "before", BEFORE)
    before = _found(url, WIDE)
    assert all(before.values())
    migrate(url)
    assert _found(url, NARROW) == before


def test_what_is_written_while_postings_are_copied_stands_and_what_goes_is_gone(
    empty_database: DatabaseUrls, tmp_path: Path
) -> None:
    url = empty_database.admin_url
    first_schema(url, tmp_path)
    migrated(url, tmp_path / "beside", BESIDE)
    before = _found(url, WIDE)
    [(gone,), (back,)] = admin_rows(url, DOCS)
    with psycopg.connect(url, options=PATH, autocommit=True) as connection:
        connection.execute("update posting set tf = tf where doc = %s", (back,))
        for doc in (gone, back):
            connection.execute(DROPPED, (doc,))
        connection.execute(ADDED, (back,))
        migrated(url, tmp_path / "copied", COPIED)
        assert connection.execute(OF_DOC, (gone,)).fetchall() == []
        # As a copy leaves it that began before the memory lost its words.
        connection.execute(
            "insert into posting_entry select tenant, (term >> 32)::int, posted(doc, tf, len)"
            " from posting_gone on conflict do nothing"
        )
        connection.execute("update posting set tf = 9 where doc = %s", (back,))
        migrate(url)
    kept = [(term, doc, 9, length) for term, doc, _, length in before["posting"] if doc == back]
    assert _found(url, NARROW) == before | {"posting": kept}


@pytest.mark.parametrize("doc", [1, 2**35 - 1])
def test_a_posting_holds_the_largest_count_and_length_that_there_can_be(
    database: DatabaseUrls, doc: int
) -> None:
    with psycopg.connect(database.admin_url, options=PATH) as connection:
        connection.execute(
            "insert into posting_entry values (7, -5, posted(%s, 300, 2000000))", (doc,)
        )
        found = connection.execute("select * from posting where doc = %s", (doc,)).fetchall()
        connection.rollback()
    assert found == [(7, -5, doc, 255, 2**20 - 1)]


def test_a_tsvector_holds_no_more_places_of_a_lexeme_than_a_posting_does(
    database: DatabaseUrls,
) -> None:
    most = "select max(cardinality(w.positions)) from unnest(to_tsvector('english', %s)) w"
    assert admin_rows(database.admin_url, most, "heron " * 1000) == [(255,)]


async def test_the_words_of_one_memory_are_erased_without_reading_those_of_all(
    database: DatabaseUrls,
) -> None:
    async with open_store(database) as store:
        [one, *_] = await write(store, *(new(f"the pool of worker {n}") for n in range(400)))
        admin_rows(database.admin_url, "analyze posting_entry")
        async with app_connection(database.service_url, store.me.tenant) as connection:
            await connection.execute("begin")
            gone = await connection.fetchval(
                "select erase_words($1, 'x.id = any($2)', $2, null)", store.me.tenant, [one]
            )
            read = await connection.fetchval(READ)
    assert (gone, read < 20) == (3, True), read
