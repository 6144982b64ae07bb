"""Memories, their versions, edges and derived rows."""
