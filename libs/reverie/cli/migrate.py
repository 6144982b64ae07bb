"""`reverie migrate`: the schema, the streams and their consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from reverie.cli.common import FAILED, Home, Json, Sets, err, out, print_json, settings_from
from reverie.domain.errors import Misconfigured, Unavailable

if TYPE_CHECKING:
    from pydantic import SecretStr

    from reverie.runtime.settings import Settings
    from reverie.store.migrate import Told

T = TypeVar("T")

PAUSE_SECONDS = 1.0

Wait = Annotated[
    float,
    typer.Option("--wait", min=0, metavar="SECONDS", help="Try so long for servers to answer."),
]
Login = Annotated[
    bool,
    typer.Option(
        "--login",
        help="Make the logins that REVERIE_DATABASE_URL and REVERIE_READER_DATABASE_URL name.",
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

    Works on REVERIE_MIGRATE_DATABASE_URL, else REVERIE_DATABASE_URL, else the
    running embedded Postgres. Safe to repeat, also by several at once, and
    while services of the version before run.

    With REVERIE_API_KEY set, that key stands afterwards. --check asks with
    REVERIE_DATABASE_URL and needs no other right than a service has.

    Example: [bold]reverie migrate --wait 60 --login[/]

    Exit codes: 0 ok, 1 failed or something is pending (--check), 2 usage,
    3 not reachable.
    """
    settings = settings_from(home, sets)
    if check:
        _check(settings, wait, json)
        return
    from reverie.store.migrate import untold

    with nullcontext(untold) if json else _telling() as tell:
        applied = _patiently(wait, lambda: _schema(settings, login, tell))
    streams = _patiently(wait, lambda: _streams(settings))
    if json:
        print_json({"applied": applied, "streams": streams})
        return
    out().print("\n".join(f"applied {name}" for name in applied) or "the schema is current")
    if streams:
        out().print("streams and consumers stand")


def _schema(settings: Settings, login: bool, tell: Told) -> list[str]:
    from reverie.cli.place import admin_url
    from reverie.store.admin import ensure_login
    from reverie.store.bootstrap import ensure_key
    from reverie.store.migrate import migrate as bring_up

    url = admin_url(settings)
    users = _logins(settings, url) if login else []
    applied = bring_up(url, tell)
    for user in users:
        ensure_login(url, *user)
    if settings.api_key is not None:
        ensure_key(url, settings.api_key.get_secret_value())
    return applied


@contextmanager
def _telling() -> Iterator[Told]:
    """A line that moves on a terminal, elsewhere one for each step; on standard error."""
    from rich.markup import escape

    if not err().is_terminal:
        yield lambda name, number, of: err().print(f"{number} of {of}: {name}", markup=False)
        return
    with err().status("Looking at the schema") as status:
        yield lambda name, number, of: status.update(f"{number} of {of}: {escape(name)}")


def _logins(settings: Settings, url: str) -> list[tuple[str, str, str]]:
    """User, password and role of the logins that row-level security is to hold."""
    from reverie.store.admin import APP_ROLE, READ_ROLE

    logins = [(*_login("database_url", settings.database_url, url), APP_ROLE)]
    if (reader := settings.reader_database_url) is not None:
        user, password = _login("reader_database_url", reader, url)
        if user == logins[0][0]:
            raise Misconfigured(
                "reader_database_url", "names the user of database_url: choose another"
            )
        logins.append((user, password, READ_ROLE))
    return logins


def _login(setting: str, given: SecretStr | None, url: str) -> tuple[str, str]:
    """User and password of an address, who must be another than who migrates."""
    from urllib.parse import unquote, urlsplit

    named = urlsplit(given.get_secret_value() if given else "")
    if not named.username or not named.password:
        raise Misconfigured(setting, "names no user and password to make a login of")
    if named.username == urlsplit(url).username:
        raise Misconfigured(setting, "names the user that migrates: give services their own")
    return unquote(named.username), unquote(named.password)


def _streams(settings: Settings) -> bool:
    if settings.nats_url is None:
        return False
    import asyncio

    from reverie.bus.streams import ensure_streams
    from reverie.cli.place import bus_credentials

    url, who = settings.nats_url.get_secret_value(), bus_credentials(settings)
    asyncio.run(ensure_streams(url, settings.nats_replicas, credentials=who))
    return True


def _check(settings: Settings, wait: float, json: bool) -> None:
    from reverie.cli.place import admin_url
    from reverie.store.migrate import pending_migrations

    asked = settings.database_url
    url = asked.get_secret_value() if asked else admin_url(settings)

    def current() -> list[str]:
        pending = pending_migrations(url)
        if pending:
            raise _Pending(pending)
        return pending

    try:
        pending = _patiently(wait, current)
    except _Pending as found:
        pending = found.names
    if json:
        print_json({"pending": pending})
    else:
        out().print(f"{len(pending)} migrations are missing" if pending else "nothing is missing")
    if pending:
        raise typer.Exit(FAILED)


class _Pending(Exception):
    """Migrations that the database lacks still."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names


def _patiently(seconds: float, work: Callable[[], T]) -> T:
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
            why = state.outcome.exception()
            waits_for = str(why) if isinstance(why, Unavailable) else "the schema is not there yet"
            err().print(f"waiting: {waits_for}", markup=False)

    again = Retrying(
        retry=retry_if_exception_type((Unavailable, _Pending)),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(PAUSE_SECONDS),
        before_sleep=tell,
        reraise=True,
    )
    return again(work)
