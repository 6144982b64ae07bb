"""Postgres and NATS as child processes, with their binaries."""
