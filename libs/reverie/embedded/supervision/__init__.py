"""Starts, watches and stops Postgres, NATS and the services of one machine."""
