"""The HTTP routes of ingest."""
