"""PageRank computed by networkx, to compare the product's ranks with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Node = TypeVar("Node")


def networkx_ranks(ballots: Iterable[tuple[Node, Node, float]]) -> dict[Node, float]:
    """PageRank as networkx has it, several votes of one for another added up."""
    # Imported here, as it is slow. The public function asks for SciPy; this is the same
    # iteration, which networkx tests it against.
    from networkx import DiGraph  # type: ignore[import-untyped]
    from networkx.algorithms.link_analysis.pagerank_alg import (  # type: ignore[import-untyped]
        _pagerank_python,
    )

    graph = DiGraph()
    for source, target, weight in ballots:
        before = graph.get_edge_data(source, target, {"weight": 0})["weight"]
        graph.add_edge(source, target, weight=before + weight)
    found: dict[Node, float] = _pagerank_python(graph, alpha=0.85, tol=1e-14, max_iter=1000)
    return found
