"""The `reverie admin` group: projects, scopes and tenants."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from reverie.cli.admin import keys, webhooks
from reverie.cli.admin.audit import audit
from reverie.cli.admin.backup import backup, restore
from reverie.cli.admin.tenant_settings import edit_settings
from reverie.cli.app.common import Home, Json, Sets, err, out, print_json, resolve_settings
from reverie.cli.app.operator_access import resolve_tenant_id, run_for_tenant
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import InvalidInput

if TYPE_CHECKING:
    from reverie.bus.interface import MessageBus
    from reverie.runtime.settings.settings import Settings
    from reverie.store.db.database import Database
    from reverie.store.platform.administration import AdministrationStore

T = TypeVar("T")
PAGE_SIZE = 500

app = typer.Typer(no_args_is_help=True, help="Look after keys, projects, scopes and tenants.")
app.add_typer(webhooks.app, name="webhooks")
projects = typer.Typer(no_args_is_help=True, help="List and delete projects.")
scopes = typer.Typer(no_args_is_help=True, help="List and delete scopes.")
tenants = typer.Typer(no_args_is_help=True, help="List, add and delete tenants.")
app.add_typer(keys.app, name="keys")
app.add_typer(projects, name="projects")
app.add_typer(scopes, name="scopes")
app.add_typer(tenants, name="tenants")
app.command("settings")(edit_settings)
app.command("audit")(audit)
app.command("backup")(backup)
app.command("restore")(restore)

Tenant = Annotated[str, typer.Option("--tenant", help="Whose.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
IncludeBelow = Annotated[bool, typer.Option("--below", help="With all scopes below it.")]
Work = Callable[["AdministrationStore", Principal], Awaitable[T]]
Batches = Callable[["AdministrationStore", Principal], AsyncIterator[Counter[str]]]


@projects.command("list")
def list_projects(
    tenant: Tenant = "default", home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Projects, with what lies in each and below it.

    Example: [bold]reverie admin projects list --tenant acme[/]
    """
    pages = _read_pages(
        lambda admin, principal, after: admin.list_projects(principal, after, PAGE_SIZE),
        lambda row: row.project,
    )
    _print_rows(_run_administration(resolve_settings(home, sets), tenant, pages), json)


@projects.command("delete")
def delete_project(
    name: Annotated[str, typer.Argument(help="The project.")],
    tenant: Tenant = "default",
    yes: Yes = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Delete a project with everything in it and below it.

    Example: [bold]reverie admin projects delete shop --yes[/]
    """
    from reverie.domain.access.scopes import slugify

    _delete_scope(resolve_settings(home, sets), tenant, f"project/{slugify(name)}", True, yes, json)


@projects.command("budgets")
def project_budgets(
    name: Annotated[str, typer.Argument(help="The project.")],
    change: Annotated[
        list[str] | None,
        typer.Option("--change", "-c", metavar="PART=TOKENS", help="One budget; may be repeated."),
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Go back to the defaults.")] = False,
    tenant: Tenant = "default",
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Show or change what the block at session start may hold: tokens of hot,
    warm, stale, session and files, and entries.

    Example: [bold]reverie admin projects budgets shop -c warm=1200 -c entries=60[/]
    """
    from reverie.domain.access.scopes import slugify
    from reverie.store.sessions.context import ContextStore

    project, requested = slugify(name), _parse_budgets(change or [])

    async def work(database: Database, principal: Principal) -> dict[str, object]:
        briefings = ContextStore(database)
        if requested or reset:
            return vars(
                await briefings.set_budgets(principal, project, None if reset else requested)
            )
        return vars(await briefings.load_budgets(principal, project))

    budgets = run_for_tenant(resolve_settings(home, sets), tenant, work)
    _print_rows([{"project": project, **budgets}], json)


@scopes.command("list")
def list_scopes(
    tenant: Tenant = "default", home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Scopes, with their memories by kind and by status.

    Example: [bold]reverie admin scopes list --json[/]
    """
    pages = _read_pages(
        lambda admin, principal, after: admin.list_scopes(principal, after, PAGE_SIZE),
        lambda row: row.scope,
    )
    _print_rows(_run_administration(resolve_settings(home, sets), tenant, pages), json)


@scopes.command("delete")
def delete_scope(
    scope: Annotated[str, typer.Argument(help="The scope, as agent/ann.")],
    below: IncludeBelow = False,
    tenant: Tenant = "default",
    yes: Yes = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Delete everything of a scope, for ever.

    Example: [bold]reverie admin scopes delete project/shop --below[/]
    """
    _delete_scope(resolve_settings(home, sets), tenant, scope, below, yes, json)


@tenants.command("list")
def list_tenants(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """All tenants.

    Example: [bold]reverie admin tenants list[/]
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform.api_keys import list_tenants

    rows = list_tenants(resolve_database_url(resolve_settings(home, sets)))
    _print_rows([{"id": tenant_id, "tenant": name} for tenant_id, name in rows], json)


@tenants.command("add")
def add_tenant(
    name: Annotated[str, typer.Argument(help="Its name: a-z 0-9 _ -.")],
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Make a tenant; one that is there stays as it is.

    Example: [bold]reverie admin tenants add acme[/]
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform import api_keys

    tenant_id = api_keys.ensure_tenant(resolve_database_url(resolve_settings(home, sets)), name)
    _print_rows([{"id": tenant_id, "tenant": name}], json)


@tenants.command("limit")
def limit_tenant(
    name: Annotated[str, typer.Argument(help="The tenant.")],
    limit: keys.Limits = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Show or set what all keys of a tenant may do together: requests_a_minute,
    requests_a_day, memories_a_day, bytes_a_day; `--limit none` takes all away.

    What is given stands in place of what was set before. No key of the tenant can
    change it, only set less for itself.

    Example: [bold]reverie admin tenants limit acme --limit memories_a_day=20000[/]
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform import api_keys

    requested = keys.parse_limits(limit) if limit else None
    limits = api_keys.set_tenant_limits(
        resolve_database_url(resolve_settings(home, sets)), name, requested
    )
    _print_rows([{"tenant": name, **limits}], json)


@tenants.command("delete")
def delete_tenant(
    name: Annotated[str, typer.Argument(help="The tenant.")],
    yes: Yes = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Delete a tenant with every row and every message of it, for ever.

    Its keys work at most `key_cache_ttl` longer, and for nothing but empty
    answers.

    Example: [bold]reverie admin tenants delete acme --yes[/]
    """
    from reverie.bus.erasure import erase_tenant_messages
    from reverie.cli.operate.dead_letters import run_on_bus

    settings = resolve_settings(home, sets)
    resolve_tenant_id(settings, name)
    _confirm_deletion(f"the tenant {name} with everything in it", yes)
    messages = Counter(run_on_bus(settings, lambda bus: erase_tenant_messages(bus, name)))
    rows = _run_administration(
        settings, name, _run_batches(lambda admin, principal: admin.delete_tenant(principal))
    )
    messages += Counter(run_on_bus(settings, lambda bus: erase_tenant_messages(bus, name)))
    _print_deletions(rows, messages, json)


def _delete_scope(
    settings: Settings, tenant: str, text: str, below: bool, yes: bool, json: bool
) -> None:
    from reverie.bus.erasure import ErasureTarget, erase_scope_messages
    from reverie.cli.operate.dead_letters import run_on_bus_async
    from reverie.domain.access.scopes import parse_scope
    from reverie.store.platform.administration import find_whole_project

    scope = parse_scope(text)
    resolve_tenant_id(settings, tenant)
    patterns = [scope, f"{scope}/*"] if below else [scope]
    _confirm_deletion(f"everything of {' and '.join(patterns)} in the tenant {tenant}", yes)
    rows = _run_administration(
        settings,
        tenant,
        _run_batches(
            lambda administration, principal: administration.delete_scope(principal, patterns)
        ),
    )

    async def forget(admin: AdministrationStore, principal: Principal) -> Counter[str]:
        lost = ErasureTarget(
            patterns,
            find_whole_project(patterns),
            lambda ids: admin.find_existing_ids(principal, ids),
        )

        async def on(bus: MessageBus) -> Counter[str]:
            counters = [counter async for counter, _ in erase_scope_messages(bus, tenant, lost)]
            return sum(counters, Counter())

        return await run_on_bus_async(settings, on)

    _print_deletions(rows, _run_administration(settings, tenant, forget), json)


def _parse_budgets(changes: Sequence[str]) -> dict[str, int]:
    """`PART=TOKENS` read. Raises `InvalidInput` naming what is none."""
    from reverie.domain.context.budgets import DEFAULT_BUDGETS

    budgets = {}
    for change in changes:
        name, _, number = change.partition("=")
        if name not in vars(DEFAULT_BUDGETS) or not number.isdecimal():
            raise InvalidInput(
                "--change",
                f"{change!r} is not one of {', '.join(vars(DEFAULT_BUDGETS))} = a number",
            )
        budgets[name] = int(number)
    return budgets


def _run_administration(settings: Settings, tenant: str, work: Work[T]) -> T:
    """Administration of one tenant."""
    from reverie.store.platform.administration import AdministrationStore

    return run_for_tenant(
        settings, tenant, lambda database, principal: work(AdministrationStore(database), principal)
    )


def _read_pages(
    read_page: Callable[[AdministrationStore, Principal, str | None], Awaitable[Sequence[T]]],
    page_key: Callable[[T], str],
) -> Work[list[dict[str, object]]]:
    """Reads a list to its end; `page_key` tells where a page ended."""

    async def run(admin: AdministrationStore, principal: Principal) -> list[dict[str, object]]:
        result: list[dict[str, object]] = []
        after = None
        while rows := await read_page(admin, principal, after):
            result += [dict(vars(row)) for row in rows]
            after = page_key(rows[-1])
        return result

    return run


def _run_batches(batches: Batches) -> Work[Counter[str]]:
    """Does batches of a deletion and shows how far they are."""
    from rich.progress import Progress, SpinnerColumn, TextColumn

    async def run(admin: AdministrationStore, principal: Principal) -> Counter[str]:
        deleted: Counter[str] = Counter()
        columns = SpinnerColumn(), TextColumn("{task.fields[rows]} rows deleted")
        with Progress(*columns, console=err(), transient=True) as progress:
            task = progress.add_task("", total=None, rows=0)
            async for batch in batches(admin, principal):
                deleted += batch
                progress.update(task, rows=deleted.total())
        return deleted

    return run


def _confirm_deletion(what: str, yes: bool) -> None:
    if not yes:
        typer.confirm(f"Delete {what}, for ever?", abort=True, err=True)


def _print_deletions(rows: Counter[str], messages: Counter[str], json: bool) -> None:
    if json:
        print_json({"rows": dict(sorted(rows.items())), "messages": dict(messages)})
        return
    counts = [*sorted(rows.items()), *((f"stream {name}", n) for name, n in (+messages).items())]
    _print_rows([{"what": name, "deleted": n} for name, n in counts], json)


def _print_rows(rows: Sequence[dict[str, object]], json: bool) -> None:
    if json:
        print_json(list(rows))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(*(rows[0] if rows else ()), box=None)
    for row in rows:
        table.add_row(*(Text(_format_cell(value)) for value in row.values()))
    out().print(table if rows else "Nothing there.")


def _format_cell(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}:{n}" for name, n in sorted(value.items()))
    return "" if value is None else str(value)
