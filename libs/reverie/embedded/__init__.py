"""Postgres, NATS and the services as child processes on one machine."""
