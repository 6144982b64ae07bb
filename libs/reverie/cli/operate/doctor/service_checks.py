"""Doctor's checks of Postgres, NATS, the services and their queues."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from pydantic import SecretStr

from reverie.cli.app.gateway_client import GatewayClient, GatewayError
from reverie.cli.app.gateway_settings import endpoint_from_settings
from reverie.cli.app.operator_access import build_bus_credentials, resolve_database_url
from reverie.cli.app.output import plural
from reverie.cli.operate.component_status import (
    check_components,
    fetch_nats_info,
    find_nats_url,
    http_urls,
)
from reverie.cli.operate.doctor.findings import Finding, error, ok, warning
from reverie.cli.operate.service_metrics import MetricsSnapshot, scrape_all
from reverie.domain.core.errors import ReverieError, Unavailable
from reverie.embedded.home import Home, existing_home
from reverie.embedded.lock import is_home_locked
from reverie.embedded.reporting import ALL, DERIVE
from reverie.embedded.supervision.service_layout import SERVICE_BY_WORKER
from reverie.inference.model_catalogue import MULTILINGUAL_MODEL
from reverie.runtime.settings.settings import Settings
from reverie.store.db.migrate import MIN_PGVECTOR, MIN_POSTGRES, list_pending_migrations
from reverie.store.db.server_admin import ServerFacts, load_server_facts

MIN_NATS = (2, 10)
UNENRICHED = "reverie_memories_unenriched"
MAX_OUTBOX_AGE = 120.0
MANY_UNENRICHED = 1000
DRAIN_SECONDS = 3.0
"""Time between two looks at many memories that wait, to see whether they become fewer."""


def check_database(settings: Settings, home: Home | None) -> Iterable[Finding]:
    """The server's version, pgvector, the schema, and the roles of the services."""
    try:
        url = resolve_database_url(settings)
    except Unavailable:
        yield warning("the embedded Postgres does not run", "Start it with `reverie up`.")
        return
    try:
        facts = load_server_facts(url)
    except Unavailable as problem:
        remedy = _unanswered_remedy(settings.database_url, "postgres", home)
        yield error(f"Postgres does not answer: {problem.hint}", remedy)
        return
    versions = list(_check_versions(facts))
    yield from versions
    if all(finding.level == "ok" for finding in versions):
        missing = list_pending_migrations(url)
        if missing:
            message = f"the schema lacks {plural(len(missing), 'migration')}"
            yield error(message, "Run `reverie migrate`.")
        else:
            yield ok("the schema is current")
    yield from _check_roles(settings)


def _unanswered_remedy(configured: SecretStr | None, name: str, home: Home | None) -> str:
    if configured is None and home is not None:
        return f"See its log: {home.logs / name}.log"
    variable = "REVERIE_NATS_URL" if name == "nats" else "REVERIE_DATABASE_URL"
    return f"Check that it runs, and that {variable} is right."


def _check_versions(facts: ServerFacts) -> Iterable[Finding]:
    if facts.version < MIN_POSTGRES:
        yield error(f"Postgres {facts.version} is too old", f"Use {MIN_POSTGRES} or later.")
    else:
        yield ok(f"Postgres {facts.version} answers")
    required = ".".join(map(str, MIN_PGVECTOR))
    if facts.pgvector is None:
        yield error("the server has no pgvector", f"Install pgvector {required} or later.")
    elif _parse_version(facts.pgvector) < MIN_PGVECTOR:
        remedy = f"Install {required} or later, then run `alter extension vector update`."
        yield error(f"pgvector {facts.pgvector} is too old", remedy)
    else:
        yield ok(f"pgvector {facts.pgvector}")


def _check_roles(settings: Settings) -> Iterable[Finding]:
    """The logins of the services: they may neither bypass row-level security nor own tables."""

    def load(name: str, url: SecretStr) -> ServerFacts | Finding:
        try:
            return load_server_facts(url.get_secret_value())
        except Unavailable as problem:
            return error(f"REVERIE_{name} is refused: {problem.hint}")

    if settings.database_url is None:
        return
    facts = load("DATABASE_URL", settings.database_url)
    if isinstance(facts, Finding):
        yield facts
        return
    remedy = "Create a login for the services: `reverie migrate --login`."
    if facts.bypasses_rls:
        yield warning(f"the services' role {facts.role} bypasses row-level security", remedy)
    elif facts.owns_schema:
        yield warning(f"the services' role {facts.role} owns the schema", remedy)
    if settings.database_readonly_url is None:
        return
    reader = load("DATABASE_READONLY_URL", settings.database_readonly_url)
    if isinstance(reader, Finding):
        yield reader
    elif not reader.read_only:
        yield warning(f"the role {reader.role} for reads may write", remedy)


def check_bus(settings: Settings, home: Home | None) -> Iterable[Finding]:
    """The server's version, JetStream, and the consumers."""
    url = find_nats_url(settings, home)
    if url is None:
        yield warning("the embedded NATS does not run", "Start it with `reverie up`.")
        return
    try:
        info = fetch_nats_info(url)
    except OSError as problem:
        remedy = _unanswered_remedy(settings.nats_url, "nats", home)
        yield error(f"NATS does not answer: {problem.strerror or problem}", remedy)
        return
    version = str(info.get("version", "0"))
    if _parse_version(version) < MIN_NATS:
        yield error(f"NATS {version} is too old", "Use 2.10 or later.")
    elif not info.get("jetstream"):
        yield error(f"NATS {version} has no JetStream", "Start it with JetStream.")
    else:
        yield ok(f"NATS {version} with JetStream")
        yield from asyncio.run(_check_consumers(url, settings))


async def _check_consumers(url: str, settings: Settings) -> list[Finding]:
    from reverie.bus.nats_bus import connect
    from reverie.bus.streams import CONSUMERS

    findings: list[Finding] = []
    credentials = build_bus_credentials(settings)
    async with connect(url, "reverie-doctor", credentials=credentials) as client:
        if not await client.wait_connected(5.0):
            return [error("NATS refuses the connection", "Check the password in nats_url.")]
        for spec in CONSUMERS:
            try:
                findings.append(ok(f"consumer {spec.name}, {await client.lag(spec)} waiting"))
            except Exception as problem:
                message = f"consumer {spec.name} on {spec.stream}: {type(problem).__name__}"
                findings.append(error(message, "Run `reverie migrate`."))
    return findings


def check_services(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """Checks that each service reports that it is ready."""
    system = check_components(settings)
    home = existing_home(settings.home)
    if not system.running:
        yield warning("the services do not run", "Start them with `reverie up`.")
        return
    for component in system.components:
        if component.name in {"postgres", "nats"}:
            continue
        if component.ok:
            yield ok(f"{component.name} is ready at {component.address}")
            continue
        is_local = home is not None and is_home_locked(home)
        remedy = ""
        if home and is_local:
            process = DERIVE if component.name in SERVICE_BY_WORKER else ALL
            remedy = f"See its log: {home.logs / process}.log"
        yield error(f"{component.name} at {component.address}: {component.problem}", remedy)


def check_key(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """Whether the gateway accepts the key that commands send."""
    try:
        url, key = endpoint_from_settings(settings)
    except ReverieError:
        # Another check says that nothing runs.
        return
    ca = str(settings.trusted_ca_file or "")
    client = GatewayClient(url, key, settings.request_timeout, None, ca)
    try:
        client.request("GET", "/v1/memories", {"limit": 1})
    except GatewayError as problem:
        if problem.problem["code"] not in {"unauthenticated", "forbidden"}:
            yield error(f"the gateway cannot answer: {problem}")
            return
        remedy = "Set REVERIE_API_KEY to a valid key, or unset it to use that of the home folder."
        yield error(f"the gateway refuses the key: {problem}", remedy)
    except Unavailable:
        return
    else:
        yield ok("the gateway accepts the key")


def check_backlog(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The metrics of the running services: their queues, models and losses."""
    system = check_components(settings)
    if not system.running:
        return
    urls = http_urls(system)
    snapshots = scrape_all(urls)
    if not any(snapshot.values for snapshot in snapshots.values()):
        return
    earlier = snapshots
    if _find_largest(snapshots, UNENRICHED) > MANY_UNENRICHED:
        time.sleep(DRAIN_SECONDS)
        snapshots = scrape_all(urls)
    problems = list(find_backlog_problems(snapshots, earlier))
    yield from problems or [ok("no queue is late, and no message failed")]


def _find_failed_work(largest: Callable[[str], float]) -> Iterable[Finding]:
    """What was given up; `largest` returns the value of a metric."""
    if (parked_dreams := largest("reverie_dreams_parked")) > 0:
        remedy = "`reverie dream history` says why; `reverie dream run --scope SCOPE` tries again."
        yield warning(f"{plural(int(parked_dreams), 'dream')} failed", remedy)
    if (failed := largest("reverie_memories_failed")) > 0:
        remedy = "The log line enrich_failed names each. Edit it to have it tried again."
        message = (
            f"{plural(int(failed), 'memory')} cannot be enriched: vectors or edges are missing"
        )
        yield warning(message, remedy)
    if (failed := largest("reverie_changes_failed")) > 0:
        remedy = "The log line change_failed names each. Announce a later change of the same files."
        yield warning(f"{plural(int(failed), 'git change')} cannot be applied", remedy)


def _find_largest(snapshots: Mapping[str, MetricsSnapshot], name: str) -> float:
    return max((one.max_value(name) or 0.0 for one in snapshots.values()), default=0.0)


def find_backlog_problems(
    snapshots: Mapping[str, MetricsSnapshot], earlier: Mapping[str, MetricsSnapshot] | None = None
) -> Iterable[Finding]:
    """The problems that the services' metrics show.

    `earlier`: a reading some seconds before, by which a backlog that drains is told from one that
    stands still.
    """

    largest = partial(_find_largest, snapshots)
    if (dead_letters := largest("reverie_dead_letters")) > 0:
        remedy = "Fix the cause in `reverie dead-letters list`, then `reverie dead-letters replay`."
        yield warning(plural(int(dead_letters), "dead letter"), remedy)
    if (age := largest("reverie_outbox_oldest_seconds")) > MAX_OUTBOX_AGE:
        remedy = "Check that NATS runs. The log of ingest says why publishing fails."
        yield error(f"an event has waited {age:.0f} s to be published", remedy)
    yield from _find_failed_work(largest)
    if (unenriched := largest(UNENRICHED)) > MANY_UNENRICHED:
        message = f"{unenriched:,.0f} memories have no vectors or edges yet"
        if unenriched < _find_largest(earlier or {}, UNENRICHED):
            yield ok(f"{message}, and become fewer")
        else:
            remedy = "Check that the model is loaded; if it is, run more replicas of ingest."
            yield warning(message, remedy)
    if (cuts := largest("reverie_derivations_cut")) > 0:
        remedy = "The log line derivation_cut names each memory. Edit it to have it read again."
        yield warning(f"{cuts:,.0f} texts took too long to be derived from completely", remedy)
    if (lost_calls := largest("reverie_audit_lost_total")) > 0:
        remedy = "The log line audit_entry_dropped says why."
        yield error(f"the audit log lacks {plural(int(lost_calls), 'call')}", remedy)
    if largest("reverie_tenants_unread") > 0:
        message = "most memories are Chinese, Japanese or Korean, which their model does not read"
        remedy = (
            f"Run `reverie models pull {MULTILINGUAL_MODEL}` if ingest cannot fetch the model."
            " If auto_multilingual_model is off, run"
            f" `reverie reembed --tenant NAME --set embedding_model={MULTILINGUAL_MODEL}`."
        )
        yield warning(message, remedy)
    yield from _check_loaded_models(snapshots)


def _check_loaded_models(snapshots: Mapping[str, MetricsSnapshot]) -> Iterable[Finding]:
    for service, snapshot in snapshots.items():
        for labels, loaded in snapshot.iter_series("reverie_model_loaded"):
            if not loaded:
                model = labels["model"]
                remedy = f"Run `reverie models pull {model}`; the service retries each minute."
                yield warning(f"{service} works without {model}", remedy)


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:2])


CHECKS = (check_database, check_bus, check_services, check_key, check_backlog)
