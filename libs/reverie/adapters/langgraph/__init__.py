"""LangGraph: checkpoints of its graphs, and its long-term store, kept in Reverie.

    from langgraph.graph import StateGraph
    from reverie.adapters.langgraph import ReverieSaver, ReverieStore

    async with AsyncReverie(url, key) as reverie:
        graph = builder.compile(
            checkpointer=ReverieSaver(reverie), store=ReverieStore(reverie)
        )
        await graph.ainvoke(state, {"configurable": {"thread_id": "1"}})

Graphs that run without `await` take a `Reverie` instead of an `AsyncReverie`.
"""

from reverie.adapters.langgraph.saver import ReverieSaver
from reverie.adapters.langgraph.store import ReverieStore

__all__ = ["ReverieSaver", "ReverieStore"]
