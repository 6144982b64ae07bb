"""The HTTP routes of the staleness service."""
