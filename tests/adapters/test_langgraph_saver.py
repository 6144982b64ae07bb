"""LangGraph's checkpointer on documents: its own conformance suite, and graphs on it.

The tests import LangGraph themselves: it takes seconds of every process that collects tests.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest

from reverie.client import AsyncReverie, Reverie
from tests.support.stack import Stack

if TYPE_CHECKING:
    from reverie.adapters.langgraph import ReverieSaver

TESTS = {
    "put": 17, "put_writes": 10, "get_tuple": 10, "list": 16, "delete_thread": 5,
    "delete_for_runs": 7, "copy_thread": 8, "prune": 8,
}  # fmt: skip
"""How many tests the suite has for each capability; the last three are its extended ones."""
THREAD: Any = {"configurable": {"thread_id": "orders/1"}}


class Order(TypedDict):
    """The state of the graph."""

    steps: Annotated[list[str], operator.add]


def _merge(kept: list[str], writes: Any) -> list[str]:
    return [*kept, *(step for steps in writes for step in steps)]


def _make_saver(client: AsyncReverie | Reverie) -> ReverieSaver:
    from reverie.adapters.langgraph import ReverieSaver

    return ReverieSaver(client)


@pytest.fixture
async def reverie(stack: Stack) -> AsyncIterator[AsyncReverie]:
    async with AsyncReverie(stack.url, stack.key) as made:
        yield made


async def test_the_suite_of_langgraph_passes(reverie: AsyncReverie) -> None:
    from langgraph.checkpoint.conformance import checkpointer_test, validate

    @checkpointer_test(name="ReverieSaver")
    async def make_saver() -> AsyncIterator[ReverieSaver]:
        yield _make_saver(reverie)

    report = await validate(make_saver)
    failures = [name for result in report.results.values() for name in result.failures]
    assert failures == []
    assert {name: found.tests_passed for name, found in report.results.items()} == TESTS


def _build_graph(saver: ReverieSaver) -> Any:
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import interrupt

    def ask(state: Order) -> dict[str, list[str]]:
        return {"steps": [f"asked: {interrupt('ship it?')}"]}

    builder = StateGraph(Order)
    builder.add_node("pack", lambda state: {"steps": ["packed"]})
    builder.add_node("ask", ask)
    builder.add_edge(START, "pack")
    builder.add_edge("pack", "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


async def test_a_graph_goes_on_where_another_process_stopped(stack: Stack) -> None:
    from langgraph.types import Command

    def run() -> None:
        with Reverie(stack.url, stack.key) as first:
            stopped = _build_graph(_make_saver(first)).invoke({"steps": ["ordered"]}, THREAD)
            assert stopped["__interrupt__"][0].value == "ship it?"
        with Reverie(stack.url, stack.key) as second:
            graph = _build_graph(_make_saver(second))
            done = graph.invoke(Command(resume="yes"), THREAD)
            assert done["steps"] == ["ordered", "packed", "asked: yes"]
            lengths = [len(state.values["steps"]) for state in graph.get_state_history(THREAD)]
            assert lengths == [3, 2, 1, 0]
            graph.checkpointer.delete_thread("orders/1")
            assert graph.get_state(THREAD).values == {}

    await asyncio.to_thread(run)


async def test_both_kinds_of_calls_run_over_a_blocking_client(stack: Stack) -> None:
    with Reverie(stack.url, stack.key) as reverie:
        saver = _make_saver(reverie)
        await _build_graph(saver).ainvoke({"steps": ["ordered"]}, THREAD)
        found = [item.metadata["step"] async for item in saver.alist(THREAD)]
        listed = await asyncio.to_thread(lambda: [i.metadata["step"] for i in saver.list(THREAD)])
        assert found == listed == [1, 0, -1]


async def test_calls_that_block_say_that_they_need_the_blocking_client(
    reverie: AsyncReverie,
) -> None:
    with pytest.raises(TypeError, match="needs a Reverie"):
        _make_saver(reverie).get_tuple(THREAD)
    with pytest.raises(TypeError, match="needs a Reverie"):
        next(iter(_make_saver(reverie).list(THREAD)))


async def test_pruning_keeps_what_delta_channels_are_rebuilt_from(reverie: AsyncReverie) -> None:
    from langgraph.channels.delta import DeltaChannel
    from langgraph.graph import START, StateGraph

    # Of this state, checkpoints hold what was added alone. The graph evaluates annotations of a
    # class in its module, which does not import the channel.
    Log = TypedDict("Log", {"steps": Annotated[list[str], DeltaChannel(_merge)]})  # noqa: UP013
    builder = StateGraph(Log)
    builder.add_node("step", lambda state: {"steps": ["done"]})
    builder.add_edge(START, "step")
    saver = _make_saver(reverie)
    graph = builder.compile(checkpointer=saver)
    for name in ("a", "b"):
        await graph.ainvoke({"steps": [name]}, THREAD)
    before = (await graph.aget_state(THREAD)).values
    await saver.aprune(["orders/1"])
    assert (await graph.aget_state(THREAD)).values == before
    assert before["steps"] == ["a", "done", "b", "done"]


async def test_pruning_a_graph_without_delta_channels_leaves_one_checkpoint(
    reverie: AsyncReverie,
) -> None:
    from langgraph.types import Command

    saver = _make_saver(reverie)
    graph = _build_graph(saver)
    await graph.ainvoke({"steps": ["ordered"]}, THREAD)
    await saver.aprune(["orders/1"])
    assert len([item async for item in saver.alist(THREAD)]) == 1
    done = await graph.ainvoke(Command(resume="no"), THREAD)
    assert done["steps"] == ["ordered", "packed", "asked: no"]
