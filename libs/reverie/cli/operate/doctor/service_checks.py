"""Doctor's checks of Postgres, NATS, the services and their queues."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from reverie.cli.app.operator_access import build_bus_credentials, resolve_database_url
from reverie.cli.operate.component_status import check_components, fetch_nats_info, find_nats_url
from reverie.cli.operate.service_metrics import MetricsSnapshot, scrape_all
from reverie.domain.core.errors import Unavailable
from reverie.embedded.home import Home, existing_home
from reverie.embedded.lock import is_home_locked
from reverie.inference.model_catalogue import MULTILINGUAL_MODEL
from reverie.runtime.settings.settings import Settings
from reverie.store.db.migrate import MIN_PGVECTOR, MIN_POSTGRES, list_pending_migrations
from reverie.store.db.server_admin import ServerFacts, load_server_facts


@dataclass(frozen=True)
class Finding:
    """The result of a check, with a remedy if something is wrong."""

    level: Literal["ok", "warning", "error"]
    message: str
    remedy: str = ""


MIN_NATS = (2, 10)


def check_database(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The server's version, pgvector and the schema."""
    try:
        url = resolve_database_url(settings)
    except Unavailable:
        yield Finding("warning", "the embedded Postgres does not run", "Start it by `reverie up`.")
        return
    try:
        facts = load_server_facts(url)
    except Unavailable as error:
        remedy = "Is it running, and is REVERIE_DATABASE_URL right?"
        yield Finding("error", f"Postgres does not answer: {error.hint}", remedy)
        return
    versions = list(_check_versions(facts))
    yield from versions
    if all(finding.level == "ok" for finding in versions):
        yield from _check_schema(url)
    yield from _check_role(settings)


def _check_versions(facts: ServerFacts) -> Iterable[Finding]:
    if facts.version < MIN_POSTGRES:
        yield Finding("error", f"Postgres {facts.version} is too old", f"Use {MIN_POSTGRES}+.")
    else:
        yield Finding("ok", f"Postgres {facts.version} answers")
    required = ".".join(map(str, MIN_PGVECTOR))
    if facts.pgvector is None:
        yield Finding(
            "error", "the server has no pgvector", f"Install pgvector {required} or later."
        )
    elif _parse_version(facts.pgvector) < MIN_PGVECTOR:
        remedy = f"Install {required} or later, then `alter extension vector update`."
        yield Finding("error", f"pgvector {facts.pgvector} is too old", remedy)
    else:
        yield Finding("ok", f"pgvector {facts.pgvector}")


def _check_schema(url: str) -> Iterable[Finding]:
    missing = list_pending_migrations(url)
    if missing:
        yield Finding("error", f"{len(missing)} migrations are missing", "Run `reverie migrate`.")
    else:
        yield Finding("ok", "the schema is current")


def _check_role(settings: Settings) -> Iterable[Finding]:
    if settings.database_url is None:
        return
    try:
        facts = load_server_facts(settings.database_url.get_secret_value())
    except Unavailable as error:
        yield Finding("error", f"REVERIE_DATABASE_URL is refused: {error.hint}")
        return
    if facts.bypasses_rls:
        remedy = "Give the services a login of their own that is a member of reverie_app."
        yield Finding(
            "warning", f"the services' role {facts.role} may bypass row-level security", remedy
        )
    elif facts.owns_schema:
        remedy = "Give the services a login of their own: `reverie migrate --login` makes it."
        yield Finding("warning", f"the services' role {facts.role} owns the schema", remedy)
    yield from _check_reader(settings)


def _check_reader(settings: Settings) -> Iterable[Finding]:
    configured = settings.database_readonly_url
    if configured is None:
        return
    try:
        facts = load_server_facts(configured.get_secret_value())
    except Unavailable as error:
        yield Finding("error", f"REVERIE_DATABASE_READONLY_URL is refused: {error.hint}")
        return
    if not facts.read_only:
        remedy = "It should be a member of reverie_read alone: `reverie migrate --login` makes it."
        yield Finding("warning", f"the role {facts.role} of recall's reads may write", remedy)


def check_bus(settings: Settings, home: Home | None) -> Iterable[Finding]:
    """The server's version, JetStream, and the consumers."""
    url = find_nats_url(settings, home)
    if url is None:
        yield Finding("warning", "the embedded NATS does not run", "Start it by `reverie up`.")
        return
    try:
        info = fetch_nats_info(url)
    except OSError as error:
        remedy = "Is it running, and is REVERIE_NATS_URL right?"
        yield Finding("error", f"NATS does not answer: {error.strerror or error}", remedy)
        return
    version = str(info.get("version", "0"))
    if _parse_version(version) < MIN_NATS:
        yield Finding("error", f"NATS {version} is too old", "Use 2.10 or later.")
    elif not info.get("jetstream"):
        yield Finding("error", f"NATS {version} has no JetStream", "Start it with JetStream.")
    else:
        yield Finding("ok", f"NATS {version} with JetStream")
        yield from asyncio.run(_check_consumers(url, settings))


async def _check_consumers(url: str, settings: Settings) -> list[Finding]:
    from reverie.bus.nats_bus import connect
    from reverie.bus.streams import CONSUMERS

    findings: list[Finding] = []
    async with connect(
        url, "reverie-doctor", credentials=build_bus_credentials(settings)
    ) as client:
        if not await client.wait_connected(5.0):
            return [
                Finding("error", "NATS refuses the connection", "Check the password in nats_url.")
            ]
        for spec in CONSUMERS:
            try:
                lag = await client.lag(spec)
                findings.append(Finding("ok", f"consumer {spec.name}, {lag} waiting"))
            except Exception as error:
                message = f"consumer {spec.name} on {spec.stream}: {type(error).__name__}"
                findings.append(Finding("error", message, "Run `reverie migrate`."))
    return findings


def check_services(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """Each service's own word on whether it is ready."""
    system = check_components(settings)
    home = existing_home(settings.home)
    if not system.running:
        yield Finding("warning", "the services do not run", "Start them by `reverie up`.")
        return
    for component in system.components:
        if component.name in {"postgres", "nats"}:
            continue
        if component.ok:
            yield Finding("ok", f"{component.name} is ready at {component.address}")
        else:
            log = (
                f"Its log: {home.logs / component.name}.log"
                if home and is_home_locked(home)
                else ""
            )
            yield Finding(
                "error", f"{component.name} at {component.address}: {component.problem}", log
            )


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:2])


MAX_OUTBOX_AGE = 120.0
MANY_UNENRICHED = 1000


def check_backlog(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """What the services that run tell of their queues, models and losses."""
    system = check_components(settings)
    snapshots = scrape_all(
        {
            component.name: component.address
            for component in system.components
            if component.address.startswith("http")
        }
    )
    if not any(snapshot.values for snapshot in snapshots.values()):
        return
    problems = list(find_backlog_problems(snapshots))
    yield from problems or [Finding("ok", "no queue is late, and no message failed")]


def find_backlog_problems(snapshots: Mapping[str, MetricsSnapshot]) -> Iterable[Finding]:
    def largest(name: str) -> float:
        return max(
            (snapshot.max_value(name) or 0.0 for snapshot in snapshots.values()), default=0.0
        )

    if (dead_letters := largest("reverie_dead_letters")) > 0:
        remedy = "See `reverie dead-letters list`; fix the cause, and run `dead-letters replay`."
        yield Finding("warning", f"{dead_letters:.0f} dead letters", remedy)
    if (age := largest("reverie_outbox_oldest_seconds")) > MAX_OUTBOX_AGE:
        remedy = "Is NATS reached? The log of ingest says why publishing fails."
        yield Finding("error", f"an event waits for {age:.0f} s to be published", remedy)
    if (parked_dreams := largest("reverie_dreams_parked")) > 0:
        remedy = "`reverie dream history` says why; `reverie dream run --scope SCOPE` asks again."
        yield Finding("warning", f"{parked_dreams:.0f} dreams failed", remedy)
    if (unenriched := largest("reverie_memories_unenriched")) > MANY_UNENRICHED:
        remedy = "Is the model there? Else let more of ingest run."
        yield Finding("warning", f"{unenriched:,.0f} memories have no vectors or edges yet", remedy)
    if (lost_calls := largest("reverie_audit_lost_total")) > 0:
        remedy = "The log line audit_lost says why."
        yield Finding("error", f"{lost_calls:.0f} calls are missing in the audit log", remedy)
    if largest("reverie_tenants_unread") > 0:
        message = "memories are mostly Chinese, Japanese or Korean, which their model does not read"
        name = MULTILINGUAL_MODEL
        remedy = (
            f"`reverie models pull {name}`, where ingest cannot fetch it: then it moves them."
            f" Where auto_multilingual_model is off,"
            f" `reverie reembed --tenant NAME --set embedding_model={name}`."
        )
        yield Finding("warning", message, remedy)
    yield from _check_loaded_models(snapshots)


def _check_loaded_models(snapshots: Mapping[str, MetricsSnapshot]) -> Iterable[Finding]:
    for service, snapshot in snapshots.items():
        for labels, loaded in snapshot.iter_series("reverie_model_loaded"):
            if not loaded:
                message = f"{service} works without {labels['model']}"
                remedy = f"Run `reverie models pull {labels['model']}`; it is tried each minute."
                yield Finding("warning", message, remedy)
