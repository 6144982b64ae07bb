"""Kinds, edges, memories, identifiers, errors."""
