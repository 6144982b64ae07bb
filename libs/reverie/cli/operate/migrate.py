"""`reverie migrate`: migrates the database schema, and creates streams and consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from reverie.cli.app.common import FAILED, Home, Json, Sets, err, out, print_json, resolve_settings
from reverie.domain.core.errors import Misconfigured, Unavailable

if TYPE_CHECKING:
    from pydantic import SecretStr

    from reverie.runtime.settings.settings import Settings
    from reverie.store.db.migrate import MigrationProgress

T = TypeVar("T")

RETRY_INTERVAL = 1.0

Wait = Annotated[
    float,
    typer.Option("--wait", min=0, metavar="SECONDS", help="Try so long for servers to answer."),
]
Login = Annotated[
    bool,
    typer.Option(
        "--login",
        help="Make the logins that REVERIE_DATABASE_URL and REVERIE_DATABASE_READONLY_URL name.",
    ),
]
Check = Annotated[
    bool, typer.Option("--check", help="Change nothing: succeed once nothing is pending.")
]


def migrate(
    wait: Wait = 0.0,
    login: Login = False,
    check: Check = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Bring the database schema up to date, and the streams where a NATS is set.

    Works on REVERIE_DATABASE_MIGRATION_URL, else REVERIE_DATABASE_URL, else the
    running embedded Postgres. Safe to repeat, also by several at once, and
    while services of the version before run.

    With REVERIE_API_KEY set, that key stands afterwards. --check asks with
    REVERIE_DATABASE_URL and needs no other right than a service has.

    Example: [bold]reverie migrate --wait 60 --login[/]

    Exit codes: 0 ok, 1 failed or something is pending (--check), 2 usage,
    3 not reachable.
    """
    settings = resolve_settings(home, sets)
    if check:
        _check_pending(settings, wait, json)
        return
    from reverie.store.db.migrate import ignore_progress

    with nullcontext(ignore_progress) if json else _report_migrations() as report:
        applied = _retry(wait, lambda: _migrate_schema(settings, login, report))
    streams = _retry(wait, lambda: _ensure_streams(settings))
    if json:
        print_json({"applied": applied, "streams": streams})
        return
    out().print("\n".join(f"applied {name}" for name in applied) or "the schema is current")
    if streams:
        out().print("streams and consumers stand")


def _migrate_schema(settings: Settings, login: bool, report: MigrationProgress) -> list[str]:
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.db.migrate import migrate as bring_up
    from reverie.store.db.server_admin import ensure_login
    from reverie.store.platform.api_keys import ensure_key

    url = resolve_database_url(settings)
    users = _required_logins(settings, url) if login else []
    applied = bring_up(url, report)
    for user in users:
        ensure_login(url, *user)
    if settings.api_key is not None:
        ensure_key(url, settings.api_key.get_secret_value())
    return applied


@contextmanager
def _report_migrations() -> Iterator[MigrationProgress]:
    """A line that moves on a terminal, elsewhere one for each step; on standard error."""
    from rich.markup import escape

    if not err().is_terminal:
        yield lambda name, number, total: err().print(f"{number} of {total}: {name}", markup=False)
        return
    with err().status("Looking at the schema") as status:
        yield lambda name, number, total: status.update(f"{number} of {total}: {escape(name)}")


def _required_logins(settings: Settings, url: str) -> list[tuple[str, str, str]]:
    """User, password and role of the logins that row-level security is to hold."""
    from reverie.store.db.server_admin import APP_ROLE, READ_ROLE

    logins = [(*_parse_login("database_url", settings.database_url, url), APP_ROLE)]
    if (reader := settings.database_readonly_url) is not None:
        user, password = _parse_login("database_readonly_url", reader, url)
        if user == logins[0][0]:
            raise Misconfigured(
                "database_readonly_url", "names the user of database_url: choose another"
            )
        logins.append((user, password, READ_ROLE))
    return logins


def _parse_login(setting: str, secret: SecretStr | None, url: str) -> tuple[str, str]:
    """User and password of an address, who must be another than who migrates."""
    from urllib.parse import unquote, urlsplit

    parsed = urlsplit(secret.get_secret_value() if secret else "")
    if not parsed.username or not parsed.password:
        raise Misconfigured(setting, "names no user and password to make a login of")
    if parsed.username == urlsplit(url).username:
        raise Misconfigured(setting, "names the user that migrates: give services their own")
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


def _check_pending(settings: Settings, wait: float, json: bool) -> None:
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
        pending = _retry(wait, current)
    except _MigrationsPending as error:
        pending = error.names
    if json:
        print_json({"pending": pending})
    else:
        out().print(f"{len(pending)} migrations are missing" if pending else "nothing is missing")
    if pending:
        raise typer.Exit(FAILED)


class _MigrationsPending(Exception):
    """Migrations that the database lacks still."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names


def _retry(timeout: float, work: Callable[[], T]) -> T:
    """What `work` answers, tried again for so long while a server is away or work is left."""
    from tenacity import (
        RetryCallState,
        Retrying,
        retry_if_exception_type,
        stop_after_delay,
        wait_fixed,
    )

    def tell(state: RetryCallState) -> None:
        if state.attempt_number == 1 and state.outcome is not None:
            error = state.outcome.exception()
            reason = str(error) if isinstance(error, Unavailable) else "the schema is not there yet"
            err().print(f"waiting: {reason}", markup=False)

    retrying = Retrying(
        retry=retry_if_exception_type((Unavailable, _MigrationsPending)),
        stop=stop_after_delay(timeout),
        wait=wait_fixed(RETRY_INTERVAL),
        before_sleep=tell,
        reraise=True,
    )
    return retrying(work)
