"""The full-text arm's scores equal BM25 computed in the test."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import psycopg
import pytest

from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import Kind
from reverie.domain.text.index_terms import index_text, query_text
from reverie.store.search.search import SearchFilter, SearchStore
from reverie.store.sessions.sessions import SessionStore, TurnToAppend
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import PATH, Store, admin_rows, app_connection, ids_of, new, write

K1, B = 1.2, 0.75
TEXTS = (
    "The connection pool is exhausted when workers hold connections across model calls",
    "Use a pool of eight connections for each worker",
    "pool pool pool pool",
    "Redis is the cache, Postgres is the store",
    "Restart the workers after the migration of Postgres",
    "getUserById reads src/middleware/auth.ts before the cache",
    "连接池 holds eight connections",
    "A note without any of the words that are asked for",
    "worker " * 40 + "pool",
    "worker " * 90 + "pool of connections",
    "eight workers restart " * 30,
    "Postgres",
)
QUESTIONS = (
    "connection pool",
    "which workers restart?",
    "Postgres cache store",
    "pool",
    "auth.ts",
    "连接池",
    "getUserById migration eight",
    "worker worker workers",
)
ANY = SearchFilter(["*"], ["active"])


@pytest.fixture
def store(shared_store: Store) -> Store:
    return shared_store


def _lexemes(store: Store, text: str) -> dict[str, int]:
    """Lexeme and how often, as Postgres makes them."""
    rows = admin_rows(
        store.admin_url,
        "select lexeme, cardinality(positions) from unnest(to_tsvector('english', %s))",
        text,
    )
    return dict(rows)


def _bm25(documents: Sequence[dict[str, int]], asked: Sequence[str]) -> list[float]:
    """Robertson & Zaragoza 2009, with the idf that is never negative (Lucene's), and lengths that
    differ little up to 20 words."""
    mean = _counted(sum(sum(d.values()) for d in documents) / len(documents))
    df = Counter(word for d in documents for word in d)
    return [
        sum(
            math.log(1 + (len(documents) - df[word] + 0.5) / (df[word] + 0.5))
            * d[word]
            * (K1 + 1)
            / (d[word] + K1 * (1 - B + B * _counted(sum(d.values())) / mean))
            for word in asked
            if word in d
        )
        for d in documents
    ]


def _counted(length: float) -> float:
    return max(length, 18 + length / 10)


async def test_scores_follow_the_formula(store: Store) -> None:
    ids = await write(store, *(new(text) for text in TEXTS))
    documents = [_lexemes(store, index_text(text)) for text in TEXTS]
    search = SearchStore(store.db)
    for question in QUESTIONS:
        words = query_text(question)
        expected = dict(zip(ids, _bm25(documents, list(_lexemes(store, words))), strict=True))
        found = await search.search_words(store.me, words, ANY, 100)
        assert dict(zip(ids_of(store, found.docs), found.scores.tolist(), strict=True)) == {
            one: pytest.approx(score, abs=1e-6) for one, score in expected.items() if score
        }, question
        assert found.scores.tolist() == sorted(found.scores.tolist(), reverse=True)


async def test_turns_are_scored_by_the_same_formula(store: Store) -> None:
    sessions = SessionStore(store.db)
    session, _ = await sessions.start(store.me, new_id(), "global", {"agent": "ann"})
    turns = [TurnToAppend(new_id(), "user", text, index_text(text)) for text in TEXTS]
    await sessions.append(store.me, session, turns)
    documents = [_lexemes(store, index_text(text)) for text in TEXTS]
    for question in QUESTIONS:
        words = query_text(question)
        scores = _bm25(documents, list(_lexemes(store, words)))
        expected = {t.id: s for t, s in zip(turns, scores, strict=True) if s}
        found = await SearchStore(store.db).search_turns(store.me, None, words, ["*"], 100)
        assert {hit.id: hit.score for hit in found} == pytest.approx(expected, abs=1e-6)


async def test_a_score_of_a_turn_tells_nothing_of_turns_that_the_reader_may_not_read(
    store: Store,
) -> None:
    sessions, search = SessionStore(store.db), SearchStore(store.db)
    readers = ((None, ["project/a"]), ("ann", ["*"]), ("ann", ["project/a"]))

    async def say(agent: str, scope: str, texts: Sequence[str]) -> None:
        session, _ = await sessions.start(store.me, new_id(), scope, {"agent": agent})
        turns = [TurnToAppend(new_id(), "user", text, index_text(text)) for text in texts]
        await sessions.append(store.me, session, turns)

    async def found() -> list[list[tuple[UUID, float]]]:
        return [
            [(hit.id, hit.score) for hit in hits]
            for agent, scopes in readers
            for question in QUESTIONS
            for hits in [
                await search.search_turns(store.me, agent, query_text(question), scopes, 100)
            ]
        ]

    await say("ann", "project/a", TEXTS)
    alone = await found()
    assert all(any(hits) for hits in alone)
    assert (await found()) == alone
    await say("bob", "project/b", TEXTS * 3)
    assert (await found()) == alone


async def test_a_word_in_every_memory_is_still_ranked(store: Store) -> None:
    await write(store, *(new(f"common word {n}") for n in range(30)))
    [rare] = await write(store, new("common rare"))
    found = await SearchStore(store.db).search_words(store.me, "common rare", ANY, 50)
    assert len(found) == 31
    assert ids_of(store, found.docs)[0] == rare
    assert (found.scores > 0).all()


async def test_a_question_without_words_finds_nothing_without_error(store: Store) -> None:
    search, me = SearchStore(store.db), store.me
    assert not len(await search.search_words(me, "anything", ANY, 10)), "an empty tenant"
    await write(store, new("the crab 🦀 is here"))
    hostile = ("& | ! <-> :*", "''; drop table memory; --", "\\", "%_")
    for question in ("the and of is", "🦀🦀", "", "   ", *hostile):
        for text in {question, query_text(question)}:
            assert not len(await search.search_words(me, text, ANY, 10)), text
            assert await search.search_turns(me, None, text, ["*"], 10) == []


async def test_equal_scores_keep_the_order_of_writing(store: Store) -> None:
    ids = await write(store, *(new("equal words", scope=f"project/p{n}") for n in range(20)))
    for _ in range(3):
        found = await SearchStore(store.db).search_words(store.me, "equal", ANY, 7)
        assert ids_of(store, found.docs) == ids[:7]


async def test_words_are_found_only_in_readable_memories(store: Store) -> None:
    ids: dict[str, UUID] = {}
    for name, fields in {
        "here": {"scope": "project/p"},
        "below": {"scope": "project/p/feature/f"},
        "beside": {"scope": "project/pp"},
        "bug": {"scope": "project/p", "kind": Kind.BUG},
    }.items():
        [ids[name]] = await write(store, new(f"needle {name}", **fields))
    [ids["theirs"]] = await write(store, new("needle"), who=store.other)
    admin_rows(
        store.admin_url, "update memory set status = 'superseded' where id = %s", ids["below"]
    )
    names = {one: name for name, one in ids.items()}

    async def found(*scopes: str, **fields: object) -> set[str]:
        only = SearchFilter(scopes, **{"status": ["active"], **fields})  # type: ignore[arg-type]
        hits = await SearchStore(store.db).search_words(store.me, "needle", only, 50)
        return {names[memory] for memory in ids_of(store, hits.docs)}

    assert await found("project/p") == {"here", "bug"}
    assert await found("project/p/*") == {"here", "bug"}
    assert await found("project/p/*", status=["active", "superseded"]) == {"here", "bug", "below"}
    assert await found("project/*", kinds=["bug"]) == {"bug"}
    assert await found("*") == {"here", "bug", "beside"}
    assert await found() == set()


async def test_turns_are_found_by_their_own_agent_and_tool_output_by_none(store: Store) -> None:
    sessions = SessionStore(store.db)
    session, _ = await sessions.start(store.me, new_id(), "project/p", {"agent": "ann"})
    user = TurnToAppend(new_id(), "user", "needle", "needle")
    tool = TurnToAppend(new_id(), "tool", "needle", "needle")
    await sessions.append(store.me, session, [user, tool])
    search = SearchStore(store.db)
    for agent, scopes, expected in (
        (None, ["*"], [user.id]),
        ("ann", ["project/p"], [user.id]),
        ("bob", ["*"], []),
        ("ann", ["global"], []),
    ):
        found = await search.search_turns(store.me, agent, "needle", scopes, 9)
        assert [hit.id for hit in found] == expected
    assert await search.search_turns(store.other, None, "needle", ["*"], 9) == []


READ = (
    "select sum(pg_stat_get_xact_tuples_returned(indexrelid))::int from pg_index"
    " where indrelid in (select oid from pg_class where relname like 'posting_entry%')"
)


def test_a_posting_can_hold_the_largest_count_and_length(shared_database: DatabaseUrls) -> None:
    with psycopg.connect(shared_database.admin_url, options=PATH) as connection:
        for doc in (1, 2**35 - 1):
            pack = "insert into posting_entry values (-7, -5, pack_posting(%s, 300, 2000000))"
            connection.execute(pack, (doc,))
            read = "select * from posting where tenant = -7 and doc = %s"
            found = connection.execute(read, (doc,)).fetchall()
            assert found == [(-7, -5, doc, 255, 2**20 - 1)]
        connection.rollback()


async def test_the_words_of_one_memory_are_erased_without_reading_all(store: Store) -> None:
    [one, *_] = await write(store, *(new(f"the pool of worker {n}") for n in range(400)))
    admin_rows(store.admin_url, "analyze posting_entry")
    async with app_connection(store.service_url, store.me.tenant) as connection:
        await connection.execute("begin")
        gone = await connection.fetchval(
            "select erase_postings($1, 'x.id = any($2)', $2, null)", store.me.tenant, [one]
        )
        read = await connection.fetchval(READ)
    assert (gone, read < 20) == (3, True), read
