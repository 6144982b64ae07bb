"""The four services: ingest, recall, dream and staleness."""
