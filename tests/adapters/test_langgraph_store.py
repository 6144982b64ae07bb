"""LangGraph's store on documents, compared with its store in memory.

The tests import LangGraph themselves: it takes seconds of every process that collects tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.client import AsyncReverie, Reverie
from tests.adapters.examples import run_example
from tests.support.stack import Stack, eventually

if TYPE_CHECKING:
    from langgraph.store.base import Op
    from langgraph.store.memory import InMemoryStore

    from reverie.adapters.langgraph import ReverieStore

LABELS = st.sampled_from(["a", "b", "a/b", "ä *", "=", "%2F"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["", "k", "k/1", " ", "日本"])
VALUES = st.fixed_dictionaries(
    {"size": st.integers(-3, 3) | st.sampled_from([0.5, 2.0])},
    optional={
        "colour": st.sampled_from(["red", "blue"]),
        "parts": st.lists(st.integers(0, 2), max_size=2),
        "at": st.fixed_dictionaries({"x": st.integers(0, 1), "y": st.none() | st.booleans()}),
    },
)
COMPARISONS = st.dictionaries(
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), st.integers(-2, 2), min_size=1
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(-2, 2) | COMPARISONS,
        "colour": st.sampled_from(["red", {"$ne": "red"}, {"$eq": "blue"}]),
        "parts": st.lists(st.integers(0, 2), max_size=2),
        "at": st.fixed_dictionaries({"x": st.integers(0, 1)}),
    },
)

# The threads of the stack use `random` while Hypothesis draws.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
PATHS = st.lists(LABELS | st.just("*"), min_size=1, max_size=2).map(tuple)


def _batches() -> st.SearchStrategy[list[list[Op]]]:
    from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

    conditions = st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), PATHS)
    operations = st.one_of(
        st.builds(PutOp, NAMESPACES, KEYS, st.none() | VALUES, st.just(False), ttl=st.none()),
        st.builds(GetOp, NAMESPACES, KEYS, st.booleans()),
        st.builds(
            SearchOp,
            st.lists(LABELS, max_size=2).map(tuple),
            st.none() | FILTERS,
            limit=st.just(1_000),
            offset=st.just(0),
            query=st.none(),
            refresh_ttl=st.booleans(),
        ),
        st.builds(
            ListNamespacesOp,
            st.none() | st.lists(conditions, max_size=2).map(tuple),
            st.none() | st.integers(1, 3),
            st.integers(1, 4),
            st.integers(0, 2),
        ),
    )
    return st.lists(st.lists(operations, min_size=1, max_size=6), min_size=1, max_size=4)


def _make_store(client: AsyncReverie | Reverie, **options: Any) -> ReverieStore:
    from reverie.adapters.langgraph import ReverieStore

    return ReverieStore(client, **options)


@pytest.fixture
async def reverie(stack: Stack) -> AsyncIterator[AsyncReverie]:
    async with AsyncReverie(stack.url, stack.key) as made:
        yield made


def _strip(result: Any) -> Any:
    """A result without times, and a search without order, which only its store defines."""
    from langgraph.store.base import Item

    if isinstance(result, Item):
        return result.namespace, result.key, result.value
    if isinstance(result, list) and any(isinstance(item, Item) for item in result):
        return sorted((_strip(item) for item in result), key=repr)
    return result


def _read(store: InMemoryStore, op: Op) -> Any:
    """A read, before which it drops the empty namespaces that this store goes on listing."""
    for namespace in [name for name, items in store._data.items() if not items]:
        del store._data[namespace]
    return _strip(store.batch([op])[0])


def test_it_answers_as_the_store_in_memory(stack: Stack) -> None:
    from langgraph.store.base import PutOp
    from langgraph.store.memory import InMemoryStore

    @settings(suppress_health_check=list(HealthCheck))
    @given(batches=_batches())
    def check(batches: Sequence[Sequence[Op]]) -> None:
        ours, theirs = _make_store(client), InMemoryStore()
        for ops in batches:
            expected = [_read(theirs, op) for op in ops if not isinstance(op, PutOp)]
            theirs.batch([op for op in ops if isinstance(op, PutOp)])
            found = [
                _strip(result)
                for op, result in zip(ops, ours.batch(ops), strict=True)
                if not isinstance(op, PutOp)
            ]
            assert found == expected
        client.delete_documents("langgraph/store/", is_prefix=True)

    with Reverie(stack.url, stack.key) as client:
        check()


async def test_pages_of_a_search_are_all_of_it_once(reverie: AsyncReverie) -> None:
    from langgraph.store.base import PutOp

    store = _make_store(reverie)
    puts = [PutOp(("a", str(n % 2)), f"k{n}", {"n": n}) for n in range(5)]
    await store.abatch(puts)
    pages = [await store.asearch(("a",), limit=2, offset=start) for start in (0, 2, 4)]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert sorted(item.value["n"] for page in pages for item in page) == [0, 1, 2, 3, 4]


async def test_a_new_value_keeps_the_time_of_the_first(reverie: AsyncReverie) -> None:
    store = _make_store(reverie)
    found = []
    for number in (1, 2):
        await store.aput(("a",), "k", {"n": number})
        found += await store.asearch(("a",))
    assert found[0].created_at == found[1].created_at
    assert found[0].updated_at < found[1].updated_at


async def test_an_item_ends_with_its_time(reverie: AsyncReverie) -> None:
    store = _make_store(reverie, default_ttl=0.05 / 60)
    await store.aput(("a",), "short", {"n": 1})
    await store.aput(("a",), "long", {"n": 2}, ttl=60)

    async def left() -> bool:
        return [item.key for item in await store.asearch(("a",))] == ["long"]

    await eventually(left)
    assert await store.aget(("a",), "short") is None


async def test_items_are_searched_by_what_they_say(stack: Stack, reverie: AsyncReverie) -> None:
    store = _make_store(reverie, scope="project/shop")
    await store.aput(
        ("shop", "pay"), "1", {"text": "Refunds above 100 euros need a second sign-off."}
    )
    await store.aput(("shop", "pay"), "2", {"text": "Invoices are numbered by year and month."})
    await store.aput(
        ("shop", "pay"), "3", {"text": "Refunds of vouchers are refused."}, index=False
    )
    await store.aput(("inn",), "4", {"text": "Refunds are made at the desk."})
    await stack.settled()
    found = await store.asearch(("shop",), query="who signs off refunds?")
    assert found[0].key == "1"
    assert found[0].score is not None
    assert {item.key: item.score for item in found}["3"] is None
    assert "4" not in {item.key for item in found}
    recalled = await reverie.recall("who signs off refunds?", scopes=["project/shop"])
    assert "second sign-off" in recalled.memories[0].content


async def _list_active(reverie: AsyncReverie) -> list[str]:
    found = reverie.list_memories(scope="project/shop", status=["active"])
    return [memory.content async for memory in found]


async def test_texts_of_a_changed_or_deleted_item_are_no_longer_recalled(
    reverie: AsyncReverie,
) -> None:
    store = _make_store(reverie, scope="project/shop", fields=["text"])
    for text in ("Prices are floats.", "Prices are cents."):
        await store.aput(("notes",), "price", {"text": text, "by": "ann"})
    assert await _list_active(reverie) == ["Prices are cents."]
    await store.adelete(("notes",), "price")
    assert await _list_active(reverie) == []


async def test_without_a_scope_only_texts_of_the_keys_own_are_forgotten(
    reverie: AsyncReverie,
) -> None:
    store = _make_store(reverie, fields=["text"])
    for each in (_make_store(reverie, scope="project/shop", fields=["text"]), store):
        await each.aput(("notes",), "price", {"text": "Prices are cents."})
    await store.adelete(("notes",), "price")
    assert await _list_active(reverie) == ["Prices are cents."]
    assert len([one async for one in reverie.list_memories(status=["active"])]) == 1


async def test_two_items_with_the_same_text_are_both_found(reverie: AsyncReverie) -> None:
    store = _make_store(reverie)
    for user in ("ann", "bob"):
        await store.aput(("users", user), "food", {"text": "Likes dumplings with chives."})
    for user in ("ann", "bob"):
        found = await store.asearch(("users", user), query="dumplings")
        assert [item.score is None for item in found] == [False], user


async def test_it_works_without_await_over_the_blocking_client(stack: Stack) -> None:
    def run() -> None:
        with Reverie(stack.url, stack.key) as reverie:
            store = _make_store(reverie)
            store.put(("a", "b"), "k", {"n": 1})
            found = store.get(("a", "b"), "k")
            assert found is not None
            assert found.value == {"n": 1}
            assert store.list_namespaces(prefix=("a",)) == [("a", "b")]

    await asyncio.to_thread(run)


async def test_the_example_goes_on_where_it_stopped(stack: Stack) -> None:
    assert await run_example(stack, "adapters/langgraph_memory") == [
        "120 euros. Ann approves refunds above 100 euros. Approve?",
        "approved by Ann",
    ]
