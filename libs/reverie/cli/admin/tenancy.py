"""The `reverie admin` group: projects, scopes and tenants."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from reverie.cli.admin import keys, webhooks
from reverie.cli.admin.audit import audit
from reverie.cli.admin.backup import backup, restore
from reverie.cli.admin.tenant_settings import edit_settings
from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.operator_access import (
    resolve_tenant_id,
    run_for_tenant,
    run_on_bus,
    run_on_bus_async,
)
from reverie.cli.app.options import common_options, resolve_settings, tenant_option, yes_option
from reverie.cli.app.output import build_table, err, print_json, print_result
from reverie.domain.core.errors import InvalidInput

if TYPE_CHECKING:
    from reverie.bus.interface import MessageBus
    from reverie.domain.access.principals import Principal
    from reverie.runtime.settings.settings import Settings
    from reverie.store.db.database import Database
    from reverie.store.platform.administration import AdministrationStore

T = TypeVar("T")
PAGE_SIZE = 500

app = click.Group(
    "admin",
    help="Manage tenants, projects, scopes, backups and the audit log.",
    epilog=EXIT_CODES_HELP,
)
projects = click.Group("projects", help="List and delete projects.", epilog=EXIT_CODES_HELP)
scopes = click.Group("scopes", help="List and delete scopes.", epilog=EXIT_CODES_HELP)
tenants = click.Group("tenants", help="List, add and delete tenants.", epilog=EXIT_CODES_HELP)
for command in (webhooks.app, projects, scopes, tenants, edit_settings, audit, backup, restore):
    app.add_command(command)

Work = Callable[["AdministrationStore", "Principal"], Awaitable[T]]
Batches = Callable[["AdministrationStore", "Principal"], AsyncIterator[Counter[str]]]


@projects.command("list")
@tenant_option
@common_options
def list_projects(tenant: str, home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """List projects with the number of their memories.

    Example: reverie admin projects list --tenant acme
    """
    pages = _read_pages(
        lambda admin, principal, after: admin.list_projects(principal, after, PAGE_SIZE),
        lambda row: row.project,
    )
    _print_rows(_run_administration(resolve_settings(home, sets), tenant, pages), json)


@projects.command("delete")
@click.argument("name", help="The project.")
@tenant_option
@yes_option
@common_options
def delete_project(
    name: str, tenant: str, yes: bool, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """Delete a project with everything in it.

    Example: reverie admin projects delete shop --yes
    """
    from reverie.domain.access.scopes import slugify

    _delete_scope(resolve_settings(home, sets), tenant, f"project/{slugify(name)}", True, yes, json)


@projects.command("budgets")
@click.argument("name", help="The project.")
@click.option(
    "--change",
    "-c",
    multiple=True,
    metavar="PART=TOKENS",
    help="A budget to change; may be repeated.",
)
@click.option("--reset", is_flag=True, help="Restore the defaults.")
@tenant_option
@common_options
def project_budgets(
    name: str,
    change: tuple[str, ...],
    reset: bool,
    tenant: str,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Show or change the token budgets of the session context.

    The parts are hot, warm, stale, session and files; entries is a count.

    Example: reverie admin projects budgets shop -c warm=1200 -c entries=60
    """
    from reverie.domain.access.scopes import slugify
    from reverie.store.sessions.context import ContextStore

    project, requested = slugify(name), _parse_budgets(change)

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
@tenant_option
@common_options
def list_scopes(tenant: str, home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """List scopes with their memories by kind and by status.

    Example: reverie admin scopes list --json
    """
    pages = _read_pages(
        lambda admin, principal, after: admin.list_scopes(principal, after, PAGE_SIZE),
        lambda row: row.scope,
    )
    _print_rows(_run_administration(resolve_settings(home, sets), tenant, pages), json)


@scopes.command("delete")
@click.argument("scope", help="The scope, such as agent/ann.")
@click.option("--recursive", is_flag=True, help="Also delete all scopes below it.")
@tenant_option
@yes_option
@common_options
def delete_scope(
    scope: str,
    recursive: bool,
    tenant: str,
    yes: bool,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Delete everything in a scope for good.

    Example: reverie admin scopes delete project/shop --recursive
    """
    _delete_scope(resolve_settings(home, sets), tenant, scope, recursive, yes, json)


@tenants.command("list")
@common_options
def list_tenants(home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """List all tenants.

    Example: reverie admin tenants list
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform.api_keys import list_tenants

    rows = list_tenants(resolve_database_url(resolve_settings(home, sets)))
    _print_rows([{"id": tenant_id, "tenant": name} for tenant_id, name in rows], json)


@tenants.command("add")
@click.argument("name", help="The name: a-z 0-9 _ -.")
@common_options
def add_tenant(name: str, home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """Make a tenant; one that is there stays as it is.

    Example: reverie admin tenants add acme
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform import api_keys

    tenant_id = api_keys.ensure_tenant(resolve_database_url(resolve_settings(home, sets)), name)
    _print_rows([{"id": tenant_id, "tenant": name}], json)


@tenants.command("limit")
@click.argument("name", help="The tenant.")
@keys.limits_option
@common_options
def limit_tenant(
    name: str, limit: tuple[str, ...], home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """Show or set the limits that all keys of a tenant share.

    The limits are requests_a_minute, requests_a_day, memories_a_day and
    bytes_a_day; `--limit none` removes all of them. The given limits replace
    the earlier ones. A key of the tenant can only set lower limits for itself.

    Example: reverie admin tenants limit acme --limit memories_a_day=20000
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform import api_keys

    requested = keys.parse_limits(limit) if limit else None
    limits = api_keys.set_tenant_limits(
        resolve_database_url(resolve_settings(home, sets)), name, requested
    )
    _print_rows([{"tenant": name, **limits}], json)


@tenants.command("delete")
@click.argument("name", help="The tenant.")
@yes_option
@common_options
def delete_tenant(
    name: str, yes: bool, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """Delete a tenant with all its rows and messages for good.

    Its keys stay valid for at most `key_cache_ttl`, and return empty results.

    Example: reverie admin tenants delete acme --yes
    """
    from reverie.bus.erasure import erase_tenant_messages

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
    settings: Settings, tenant: str, text: str, recursive: bool, yes: bool, json: bool
) -> None:
    from reverie.bus.erasure import ErasureTarget, erase_scope_messages
    from reverie.domain.access.scopes import parse_scope
    from reverie.store.platform.administration import find_whole_project

    scope = parse_scope(text)
    resolve_tenant_id(settings, tenant)
    patterns = [scope, f"{scope}/*"] if recursive else [scope]
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
    """The budgets in `PART=TOKENS`. Raises `InvalidInput`."""
    from reverie.domain.context.budgets import DEFAULT_BUDGETS

    budgets = {}
    for change in changes:
        name, _, number = change.partition("=")
        if name not in vars(DEFAULT_BUDGETS) or not number.isdecimal():
            raise InvalidInput(
                "--change",
                f"{change!r} is not a number for one of {', '.join(vars(DEFAULT_BUDGETS))}",
            )
        budgets[name] = int(number)
    return budgets


def _run_administration(settings: Settings, tenant: str, work: Work[T]) -> T:
    """Runs `work` with the administration of one tenant."""
    from reverie.store.platform.administration import AdministrationStore

    return run_for_tenant(
        settings, tenant, lambda database, principal: work(AdministrationStore(database), principal)
    )


def _read_pages(
    read_page: Callable[[AdministrationStore, Principal, str | None], Awaitable[Sequence[T]]],
    page_key: Callable[[T], str],
) -> Work[list[dict[str, object]]]:
    """Reads all pages of a list; `page_key` is the cursor of a row."""

    async def run(admin: AdministrationStore, principal: Principal) -> list[dict[str, object]]:
        result: list[dict[str, object]] = []
        after = None
        while rows := await read_page(admin, principal, after):
            result += [dict(vars(row)) for row in rows]
            after = page_key(rows[-1])
        return result

    return run


def _run_batches(batches: Batches) -> Work[Counter[str]]:
    """Deletes in batches, and shows the progress."""
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


def _confirm_deletion(subject: str, yes: bool) -> None:
    if not yes:
        click.confirm(f"Delete {subject} for good?", abort=True, err=True)


def _print_deletions(rows: Counter[str], messages: Counter[str], json: bool) -> None:
    if json:
        print_json({"rows": dict(sorted(rows.items())), "messages": dict(messages)})
        return
    counts = [*sorted(rows.items()), *((f"stream {name}", n) for name, n in (+messages).items())]
    _print_rows([{"data": name, "deleted": n} for name, n in counts], json)


def _print_rows(rows: Sequence[dict[str, object]], json: bool) -> None:
    names = rows[0] if rows else ()
    columns = {name: lambda row, name=name: _format_cell(row[name]) for name in names}
    print_result(list(rows), json, build_table(rows, columns))


def _format_cell(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}:{n}" for name, n in sorted(value.items()))
    return "" if value is None else str(value)
