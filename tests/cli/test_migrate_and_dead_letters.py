"""`reverie migrate` and the dead-letter command as an operator runs them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from click.testing import CliRunner

from reverie.bus.dead_letters import DeadLetterOrigin, publish_dead_letter
from reverie.bus.interface import Message
from reverie.bus.nats_bus import connect
from reverie.bus.streams import ensure_streams
from reverie.cli.app.main import app
from reverie.store.db.server_admin import load_server_facts
from reverie.testing.servers import DatabaseUrls, NatsServer


async def test_a_dead_letter_is_listed_with_its_reason_and_replayed(nats_url: str) -> None:
    await ensure_streams(nats_url)
    async with connect(nats_url, "test") as bus:
        assert await bus.wait_connected(30)
        message = Message("memory.default.remembered", b'{"v": 1}', {}, 8)
        await publish_dead_letter(
            bus, DeadLetterOrigin("MEMORY", "ingest-enrich", "7"), message, "no such thing"
        )
    there = ["--set", f"nats_url={nats_url}"]
    listed = _run("dead-letters", "list", "--json", *there)
    [letter] = json.loads(listed)
    assert letter["subject"] == "memory.default.remembered"
    assert (letter["reason"], letter["deliveries"]) == ("no such thing", 8)
    assert "no such thing" in _run("dead-letters", "list", *there)
    assert json.loads(_run("dead-letters", "replay", str(letter["seq"]), "--json", *there)) == {
        "replayed": 1
    }
    assert _run("dead-letters", "list", *there).strip() == "No dead letters."


def _run(*args: str) -> str:
    """The standard output of a command that must succeed, run in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(CliRunner().invoke, app, list(args)).result()
    assert result.exit_code == 0, result.output
    return result.stdout


def run(*flags: str, **settings: str) -> tuple[int, str]:
    sets = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    done = CliRunner().invoke(app, ["migrate", *flags, *sets])
    return done.exit_code, done.output


def login(database: DatabaseUrls) -> str:
    """A URL of a user that nobody has made yet."""
    parts = urlsplit(database.admin_url)
    user = f"trial_{database.name}"
    return f"postgresql://{user}:s%40cret@{parts.hostname}:{parts.port}/{database.name}"


def test_migrate_creates_the_service_login_that_may_check_the_schema(
    empty_database: DatabaseUrls, nats_server: NatsServer
) -> None:
    services = login(empty_database)
    both = {"database_url": services, "database_migration_url": empty_database.admin_url}
    code, said = run("--json", "--login", nats_url=nats_server.url, **both)
    assert (code, json.loads(said)["streams"]) == (0, True)
    facts = load_server_facts(services)
    assert not facts.bypasses_rls
    code, said = run("--json", "--check", database_url=services)
    assert (code, json.loads(said)) == (0, {"pending": []})
    assert run("--login", **both)[0] == 0


def test_the_check_fails_until_every_step_was_printed_and_run(
    empty_database: DatabaseUrls,
) -> None:
    url = empty_database.admin_url
    code, said = run("--json", "--check", database_url=url)
    assert (code, len(json.loads(said)["pending"]) > 20) == (1, True)
    # The login of services is not that of the migration.
    done = CliRunner().invoke(app, ["migrate", "--login", "--set", f"database_url={url}"])
    assert "give services their own" in str(done.exception)
    code, said = run(database_url=url)
    many = said.count("applied ")
    assert code == 0
    assert f"\n2 of {many}: 02_tenants" in said
    assert f"\n{many} of {many}: " in said
    assert run("--check", database_url=url)[0] == 0
