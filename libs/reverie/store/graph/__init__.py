"""Edges between memories: graph, links, links between projects, contradictions."""
