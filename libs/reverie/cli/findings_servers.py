"""What `reverie doctor` looks at on Postgres, NATS and the services."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable

from reverie.cli.finding import Finding
from reverie.cli.parts import describe_nats, look, nats_address
from reverie.cli.place import admin_url, bus_credentials
from reverie.domain.errors import Unavailable
from reverie.embedded.home import Home, existing_home
from reverie.embedded.lock import is_held
from reverie.runtime.settings import Settings
from reverie.store.admin import ServerFacts, server_facts
from reverie.store.migrate import MIN_PGVECTOR, MIN_POSTGRES, pending_migrations

MIN_NATS = (2, 10)


def database(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The server's version, pgvector and the schema."""
    try:
        url = admin_url(settings)
    except Unavailable:
        yield Finding("note", "the embedded Postgres does not run", "Start it by `reverie up`.")
        return
    try:
        facts = server_facts(url)
    except Unavailable as error:
        mend = "Is it running, and is REVERIE_DATABASE_URL right?"
        yield Finding("error", f"Postgres does not answer: {error.hint}", mend)
        return
    versions = list(_versions(facts))
    yield from versions
    if all(finding.level == "ok" for finding in versions):
        yield from _schema(url)
    yield from _role(settings)


def _versions(facts: ServerFacts) -> Iterable[Finding]:
    if facts.version < MIN_POSTGRES:
        yield Finding("error", f"Postgres {facts.version} is too old", f"Use {MIN_POSTGRES}+.")
    else:
        yield Finding("ok", f"Postgres {facts.version} answers")
    wanted = ".".join(map(str, MIN_PGVECTOR))
    if facts.pgvector is None:
        yield Finding("error", "the server has no pgvector", f"Install pgvector {wanted} or later.")
    elif _numbers(facts.pgvector) < MIN_PGVECTOR:
        mend = f"Install {wanted} or later, then `alter extension vector update`."
        yield Finding("error", f"pgvector {facts.pgvector} is too old", mend)
    else:
        yield Finding("ok", f"pgvector {facts.pgvector}")


def _schema(url: str) -> Iterable[Finding]:
    missing = pending_migrations(url)
    if missing:
        yield Finding("error", f"{len(missing)} migrations are missing", "Run `reverie migrate`.")
    else:
        yield Finding("ok", "the schema is current")


def _role(settings: Settings) -> Iterable[Finding]:
    if settings.database_url is None:
        return
    try:
        facts = server_facts(settings.database_url.get_secret_value())
    except Unavailable as error:
        yield Finding("error", f"REVERIE_DATABASE_URL is refused: {error.hint}")
        return
    if facts.bypasses_rls:
        mend = "Give the services a login of their own that is a member of reverie_app."
        yield Finding(
            "note", f"the services' role {facts.role} may bypass row-level security", mend
        )
    elif facts.owns_schema:
        mend = "Give the services a login of their own: `reverie migrate --login` makes it."
        yield Finding("note", f"the services' role {facts.role} owns the schema", mend)
    yield from _reader(settings)


def _reader(settings: Settings) -> Iterable[Finding]:
    given = settings.reader_database_url
    if given is None:
        return
    try:
        facts = server_facts(given.get_secret_value())
    except Unavailable as error:
        yield Finding("error", f"REVERIE_READER_DATABASE_URL is refused: {error.hint}")
        return
    if not facts.only_reads:
        mend = "It should be a member of reverie_read alone: `reverie migrate --login` makes it."
        yield Finding("note", f"the role {facts.role} of recall's reads may write", mend)


def bus(settings: Settings, home: Home | None) -> Iterable[Finding]:
    """The server's version, JetStream, and the consumers."""
    url = nats_address(settings, home)
    if url is None:
        yield Finding("note", "the embedded NATS does not run", "Start it by `reverie up`.")
        return
    try:
        info = describe_nats(url)
    except OSError as error:
        mend = "Is it running, and is REVERIE_NATS_URL right?"
        yield Finding("error", f"NATS does not answer: {error.strerror or error}", mend)
        return
    version = str(info.get("version", "0"))
    if _numbers(version) < MIN_NATS:
        yield Finding("error", f"NATS {version} is too old", "Use 2.10 or later.")
    elif not info.get("jetstream"):
        yield Finding("error", f"NATS {version} has no JetStream", "Start it with JetStream.")
    else:
        yield Finding("ok", f"NATS {version} with JetStream")
        yield from asyncio.run(_consumers(url, settings))


async def _consumers(url: str, settings: Settings) -> list[Finding]:
    from reverie.bus.connection import connect
    from reverie.bus.streams import CONSUMERS

    found: list[Finding] = []
    async with connect(url, "reverie-doctor", credentials=bus_credentials(settings)) as client:
        if not await client.wait_connected(5.0):
            return [Finding("error", "NATS refuses our connection", "Is the password right?")]
        for spec in CONSUMERS:
            try:
                lag = await client.lag(spec)
                found.append(Finding("ok", f"consumer {spec.name}, {lag} waiting"))
            except Exception as error:
                what = f"consumer {spec.name} on {spec.stream}: {type(error).__name__}"
                found.append(Finding("error", what, "Run `reverie migrate`."))
    return found


def services(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """Each service's own word on whether it is ready."""
    view = look(settings)
    home = existing_home(settings.home)
    if not view.running:
        yield Finding("note", "the services do not run", "Start them by `reverie up`.")
        return
    for part in view.parts:
        if part.name in {"postgres", "nats"}:
            continue
        if part.ok:
            yield Finding("ok", f"{part.name} is ready at {part.address}")
        else:
            log = f"Its log: {home.logs / part.name}.log" if home and is_held(home) else ""
            yield Finding("error", f"{part.name} at {part.address}: {part.problem}", log)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:2])
