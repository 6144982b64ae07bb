"""The servers that all tests stand on."""

from __future__ import annotations

import psycopg
import pytest

from reverie.embedded.greeting import greet
from reverie.testing.servers import Database, NatsServer


def _port(url: str) -> int:
    return int(url.rsplit(":", 1)[1])


def test_the_shared_postgres_takes_queries_and_has_pgvector(postgres_server: str) -> None:
    with psycopg.connect(postgres_server) as db:
        found = db.execute(
            "select default_version from pg_available_extensions where name = 'vector'"
        ).fetchone()
    assert found is not None
    assert tuple(map(int, found[0].split(".")))[:2] >= (0, 8)


def test_an_empty_database_is_the_tests_own(empty_database: Database) -> None:
    with psycopg.connect(empty_database.admin_url) as db:
        assert db.execute("select current_database()").fetchone() == (empty_database.name,)


def test_the_service_role_cannot_bypass_row_level_security(database: Database) -> None:
    with psycopg.connect(database.service_url) as db:
        found = db.execute(
            "select rolsuper, rolbypassrls, rolcreaterole from pg_roles"
            " where rolname = current_user"
        ).fetchone()
    assert found == (False, False, False)


def test_nats_comes_back_on_the_same_port_after_a_kill(nats_server: NatsServer) -> None:
    url = nats_server.url
    nats_server.kill()
    with pytest.raises(OSError):
        greet("127.0.0.1", _port(url))
    nats_server.start()
    assert nats_server.url == url
    assert greet("127.0.0.1", _port(url))["jetstream"] is True
