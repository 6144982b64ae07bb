"""Ingest service: stores memories and turns, and derives the data for searches."""
