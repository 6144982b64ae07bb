"""`reverie migrate`: migrates the database schema, and creates streams and consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeVar

import click

from reverie.cli.app.errors import FAILED, OK
from reverie.cli.app.options import CommonOptions, common_options
from reverie.cli.app.output import err
from reverie.domain.core.errors import Misconfigured, Unavailable

if TYPE_CHECKING:
    from pydantic import SecretStr

    from reverie.runtime.settings.settings import Settings
    from reverie.store.db.migrate import MigrationProgress

T = TypeVar("T")

RETRY_INTERVAL = 1.0


@click.command("migrate")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="How long to wait for servers that do not answer.",
)
@click.option(
    "--login",
    is_flag=True,
    help="Create the logins in REVERIE_DATABASE_URL and REVERIE_DATABASE_READONLY_URL.",
)
@click.option("--check", is_flag=True, help="Change nothing; fail if a migration is pending.")
@common_options
def migrate(options: CommonOptions, wait: float, login: bool, check: bool) -> None:
    """Migrate the database schema, and the streams if a NATS is configured.

    It uses REVERIE_DATABASE_MIGRATION_URL, else REVERIE_DATABASE_URL, else the
    running embedded Postgres. It is safe to repeat, to run in parallel, and to
    run beside services of the previous version.

    If REVERIE_API_KEY is set, that key is created; a key that was rotated or
    revoked stays invalid, with a warning. --check uses REVERIE_DATABASE_URL and
    needs only the rights of a service.

    Example: reverie migrate --wait 60 --login

    Exit codes: 0 ok, 1 failed, or a migration is pending (--check), 2 usage,
    3 not reachable.
    """
    settings = options.settings()
    if check:
        pending = _list_pending(settings, wait)
        message = f"{len(pending)} migrations are pending" if pending else "no migration is pending"
        options.print_result({"pending": pending}, message)
        raise click.exceptions.Exit(FAILED if pending else OK)
    from reverie.store.db.migrate import ignore_progress

    with nullcontext(ignore_progress) if options.json else _report_migrations() as report:
        applied = _retry(wait, lambda: _migrate_schema(settings, login, report))
    streams = _retry(wait, lambda: _ensure_streams(settings))
    lines = [f"applied {name}" for name in applied] or ["the schema is current"]
    lines += ["streams and consumers are up to date"] if streams else []
    options.print_result({"applied": applied, "streams": streams}, *lines)


def _migrate_schema(settings: Settings, login: bool, report: MigrationProgress) -> list[str]:
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.db.migrate import migrate as apply_migrations
    from reverie.store.db.server_admin import ensure_login
    from reverie.store.platform.api_keys import RetiredKey, ensure_key

    url = resolve_database_url(settings)
    users = _required_logins(settings, url) if login else []
    applied = apply_migrations(url, report)
    for user in users:
        ensure_login(url, *user)
    if settings.api_key is not None:
        try:
            ensure_key(url, settings.api_key.get_secret_value())
        except RetiredKey as error:
            # The schema is what an upgrade needs: an old setting must not stop it.
            err().print(f"warning: {error}", markup=False, soft_wrap=True)
    return applied


@contextmanager
def _report_migrations() -> Iterator[MigrationProgress]:
    """Shows the progress on standard error: a status line on a terminal, else a line per step."""
    from rich.markup import escape

    if not err().is_terminal:
        yield lambda name, number, total: err().print(f"{number} of {total}: {name}", markup=False)
        return
    with err().status("Checking the schema") as status:
        yield lambda name, number, total: status.update(f"{number} of {total}: {escape(name)}")


def _required_logins(settings: Settings, url: str) -> list[tuple[str, str, str]]:
    """User, password and role of the logins that row-level security applies to."""
    from reverie.store.db.roles import APP_ROLE, READ_ROLE

    logins = [(*_parse_login("database_url", settings.database_url, url), APP_ROLE)]
    if (reader := settings.database_readonly_url) is not None:
        user, password = _parse_login("database_readonly_url", reader, url)
        if user == logins[0][0]:
            raise Misconfigured(
                "database_readonly_url", "has the same user as database_url: choose another one"
            )
        logins.append((user, password, READ_ROLE))
    return logins


def _parse_login(setting: str, secret: SecretStr | None, url: str) -> tuple[str, str]:
    """User and password of a URL; the user must not be the one that migrates."""
    from urllib.parse import unquote, urlsplit

    parsed = urlsplit(secret.get_secret_value() if secret else "")
    if not parsed.username or not parsed.password:
        raise Misconfigured(setting, "has no user and password")
    if parsed.username == urlsplit(url).username:
        raise Misconfigured(setting, "has the same user as the migration: give services their own")
    return unquote(parsed.username), unquote(parsed.password)


def _ensure_streams(settings: Settings) -> bool:
    if settings.nats_url is None:
        return False
    import asyncio

    from reverie.bus.streams import ensure_streams
    from reverie.cli.app.operator_access import build_bus_credentials

    url, credentials = settings.nats_url.get_secret_value(), build_bus_credentials(settings)
    asyncio.run(ensure_streams(url, settings.nats_replicas, credentials=credentials))
    return True


def _list_pending(settings: Settings, wait: float) -> list[str]:
    """The migrations that are still pending after the wait."""
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.db.migrate import list_pending_migrations

    configured = settings.database_url
    url = configured.get_secret_value() if configured else resolve_database_url(settings)

    def current() -> list[str]:
        pending = list_pending_migrations(url)
        if pending:
            raise _MigrationsPending(pending)
        return pending

    try:
        return _retry(wait, current)
    except _MigrationsPending as error:
        return error.names


class _MigrationsPending(Exception):
    """The database lacks migrations."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names


def _retry(timeout: float, work: Callable[[], T]) -> T:
    """The result of `work`, retried until the timeout if a server is down or a step pending."""
    from tenacity import (
        RetryCallState,
        Retrying,
        retry_if_exception_type,
        stop_after_delay,
        wait_fixed,
    )

    def report(state: RetryCallState) -> None:
        if state.attempt_number == 1 and state.outcome is not None:
            error = state.outcome.exception()
            reason = str(error) if isinstance(error, Unavailable) else "migrations are pending"
            err().print(f"waiting: {reason}", markup=False)

    retrying = Retrying(
        retry=retry_if_exception_type((Unavailable, _MigrationsPending)),
        stop=stop_after_delay(timeout),
        wait=wait_fixed(RETRY_INTERVAL),
        before_sleep=report,
        reraise=True,
    )
    return retrying(work)
