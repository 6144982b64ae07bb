"""Anchors, code changes and stale marks."""
