"""Periodic work on the graph: decay, merging, topics, reflection."""
