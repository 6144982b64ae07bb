"""Retrieval by words and by vectors, and its caches."""
