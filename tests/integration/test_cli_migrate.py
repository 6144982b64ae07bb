"""`reverie migrate` as an operator runs it: waiting, making the services' login, only asking."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from typer.testing import CliRunner

from reverie.cli.main import app
from reverie.store.admin import server_facts
from reverie.testing.servers import Database, NatsServer


def run(*flags: str, **settings: str) -> tuple[int, str]:
    sets = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    done = CliRunner().invoke(app, ["migrate", *flags, *sets])
    return done.exit_code, done.output


def login(database: Database) -> str:
    """A URL of a user that nobody has made yet."""
    parts = urlsplit(database.admin_url)
    user = f"trial_{database.name}"
    return f"postgresql://{user}:s%40cret@{parts.hostname}:{parts.port}/{database.name}"


def test_it_makes_the_login_of_services_which_may_ask_what_is_missing(
    empty_database: Database, nats_server: NatsServer
) -> None:
    services = login(empty_database)
    both = {"database_url": services, "migrate_database_url": empty_database.admin_url}
    code, said = run("--json", "--login", nats_url=nats_server.url, **both)
    assert (code, json.loads(said)["streams"]) == (0, True)
    facts = server_facts(services)
    assert not facts.bypasses_rls
    code, said = run("--json", "--check", database_url=services)
    assert (code, json.loads(said)) == (0, {"pending": []})
    assert run("--login", **both)[0] == 0


def test_each_step_is_told_as_it_begins(empty_database: Database) -> None:
    code, said = run(database_url=empty_database.admin_url)
    many = said.count("applied ")
    assert code == 0
    assert f"\n2 of {many}: 0002" in said
    assert f"\n{many} of {many}: " in said


def test_asking_fails_while_something_is_missing(empty_database: Database) -> None:
    code, said = run("--json", "--check", database_url=empty_database.admin_url)
    assert (code, len(json.loads(said)["pending"]) > 30) == (1, True)


def test_a_login_of_services_is_not_that_of_migrations(empty_database: Database) -> None:
    done = CliRunner().invoke(
        app, ["migrate", "--login", "--set", f"database_url={empty_database.admin_url}"]
    )
    assert "give services their own" in str(done.exception)
    assert run("--check", database_url=empty_database.admin_url)[0] == 1
