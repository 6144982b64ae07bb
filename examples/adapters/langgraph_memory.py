"""A graph of LangGraph that waits for a person, and goes on where it stopped; no model is needed.

REVERIE_URL and REVERIE_API_KEY say which Reverie. What a node puts into the store is found by what
it says, by this graph and by every other agent.
"""

from __future__ import annotations

import asyncio
import os
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command, interrupt

from reverie.adapters.langgraph import ReverieSaver, ReverieStore
from reverie.client import AsyncReverie

THREAD: RunnableConfig = {"configurable": {"thread_id": "refund-1"}}


class Refund(TypedDict):
    """The state of the graph."""

    amount: int
    decision: str


async def decide(state: Refund, *, store: BaseStore) -> dict[str, str]:
    """Asks a person, and tells the rule that is known."""
    known = await store.asearch(("refunds",), query="who must approve a refund?", limit=1)
    rule = known[0].value["text"]
    return {"decision": str(interrupt(f"{state['amount']} euros. {rule} Approve?"))}


async def main() -> None:
    """Two clients, as two processes would be: the second resumes what the first began."""
    url, key = os.environ["REVERIE_URL"], os.environ["REVERIE_API_KEY"]
    builder = StateGraph(Refund)
    builder.add_node("decide", decide)
    builder.add_edge(START, "decide")
    async with AsyncReverie(url, key) as client:
        store = ReverieStore(client)
        await store.aput(("refunds",), "rule", {"text": "Ann approves refunds above 100 euros."})
        graph = builder.compile(checkpointer=ReverieSaver(client), store=store)
        waiting = await graph.ainvoke({"amount": 120, "decision": ""}, THREAD)
        print(waiting["__interrupt__"][0].value)
    async with AsyncReverie(url, key) as client:
        graph = builder.compile(checkpointer=ReverieSaver(client), store=ReverieStore(client))
        done = await graph.ainvoke(Command(resume="approved by Ann"), THREAD)
        print(done["decision"])


if __name__ == "__main__":
    asyncio.run(main())
