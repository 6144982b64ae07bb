"""Sessions, turns, dream jobs and summaries."""
