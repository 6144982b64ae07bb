"""Postgres: connections, repositories, named SQL, the schema."""
