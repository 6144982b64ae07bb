"""The `reverie admin` group: projects, scopes and tenants."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.admin import keys, webhooks
from reverie.cli.admin.audit import audit
from reverie.cli.admin.backup import backup, restore
from reverie.cli.admin.tenant_settings import edit_settings
from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.operator_access import (
    resolve_database_url,
    resolve_tenant_id,
    run_for_tenant,
    run_on_bus,
    run_on_bus_async,
)
from reverie.cli.app.options import (
    CommonOptions,
    common_options,
    tenant_option,
    yes_option,
)
from reverie.cli.app.output import build_table, confirm, err
from reverie.domain.core.errors import InvalidInput

if TYPE_CHECKING:
    from reverie.bus.interface import MessageBus
    from reverie.domain.access.principals import Principal
    from reverie.runtime.settings.settings import Settings
    from reverie.store.db.database import Database
    from reverie.store.platform.administration import AdministrationStore

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


@projects.command("list")
@tenant_option
@common_options
def list_projects(options: CommonOptions, tenant: str) -> None:
    """List projects with the number of their memories.

    Example: reverie admin projects list --tenant acme
    """
    _print_pages(options, tenant, "project", lambda store, *page: store.list_projects(*page))


@projects.command("delete")
@click.argument("name", help="The project.")
@tenant_option
@yes_option
@common_options
def delete_project(options: CommonOptions, name: str, tenant: str, yes: bool) -> None:
    """Delete a project with everything in it.

    Example: reverie admin projects delete shop --yes
    """
    from reverie.domain.access.scopes import slugify

    _delete_scope(options, tenant, f"project/{slugify(name)}", recursive=True, yes=yes)


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
    options: CommonOptions, name: str, change: tuple[str, ...], reset: bool, tenant: str
) -> None:
    """Show or change the token budgets of the session context.

    The parts are hot, warm, stale, session and files; entries is a count.

    Example: reverie admin projects budgets shop -c warm=1200 -c entries=60
    """
    from reverie.domain.access.scopes import slugify
    from reverie.store.sessions.context import ContextStore

    project, requested = slugify(name), _parse_budgets(change)

    async def work(database: Database, principal: Principal) -> dict[str, object]:
        store = ContextStore(database)
        if not requested and not reset:
            return vars(await store.load_budgets(principal, project))
        return vars(await store.set_budgets(principal, project, None if reset else requested))

    budgets = run_for_tenant(options.settings(), tenant, work)
    _print_rows(options, [{"project": project, **budgets}])


@scopes.command("list")
@tenant_option
@common_options
def list_scopes(options: CommonOptions, tenant: str) -> None:
    """List scopes with their memories by kind and by status.

    Example: reverie admin scopes list --json
    """
    _print_pages(options, tenant, "scope", lambda store, *page: store.list_scopes(*page))


@scopes.command("delete")
@click.argument("scope", help="The scope, such as agent/ann.")
@click.option("--recursive", is_flag=True, help="Also delete all scopes below it.")
@tenant_option
@yes_option
@common_options
def delete_scope(
    options: CommonOptions, scope: str, recursive: bool, tenant: str, yes: bool
) -> None:
    """Delete everything in a scope for good.

    Example: reverie admin scopes delete project/shop --recursive
    """
    _delete_scope(options, tenant, scope, recursive, yes)


@tenants.command("list")
@common_options
def list_tenants(options: CommonOptions) -> None:
    """List all tenants.

    Example: reverie admin tenants list
    """
    from reverie.store.platform.api_keys import list_tenants

    rows = list_tenants(resolve_database_url(options.settings()))
    _print_rows(options, [{"id": tenant_id, "tenant": name} for tenant_id, name in rows])


@tenants.command("add")
@click.argument("name", help="The name: a-z 0-9 _ -.")
@common_options
def add_tenant(options: CommonOptions, name: str) -> None:
    """Create a tenant; an existing one stays as it is.

    Example: reverie admin tenants add acme
    """
    from reverie.store.platform import api_keys

    tenant_id = api_keys.ensure_tenant(resolve_database_url(options.settings()), name)
    _print_rows(options, [{"id": tenant_id, "tenant": name}])


@tenants.command("limit")
@click.argument("name", help="The tenant.")
@keys.limits_option
@common_options
def limit_tenant(options: CommonOptions, name: str, limit: tuple[str, ...]) -> None:
    """Show or set the limits that all keys of a tenant share.

    The limits are requests_per_minute, requests_per_day, memories_per_day,
    bytes_per_day, and memories, the most that the tenant may hold; `--limit
    none` removes all of them. The given limits replace
    the earlier ones. A key of the tenant can only set lower limits for itself.

    Example: reverie admin tenants limit acme --limit memories_per_day=20000
    """
    from reverie.store.platform import api_keys

    requested = keys.parse_limits(limit) if limit else None
    limits = api_keys.set_tenant_limits(resolve_database_url(options.settings()), name, requested)
    _print_rows(options, [{"tenant": name, **limits}])


@tenants.command("delete")
@click.argument("name", help="The tenant.")
@yes_option
@common_options
def delete_tenant(options: CommonOptions, name: str, yes: bool) -> None:
    """Delete a tenant with all its rows and messages for good.

    Its keys stay valid for at most `key_cache_ttl`, and return empty results.

    Example: reverie admin tenants delete acme --yes
    """
    from reverie.bus.erasure import erase_tenant_messages

    settings = options.settings()
    resolve_tenant_id(settings, name)
    _confirm_deletion(f"the tenant {name} with everything in it", yes)
    messages = Counter(run_on_bus(settings, lambda bus: erase_tenant_messages(bus, name)))
    rows = _delete_rows(settings, name, lambda store, principal: store.delete_tenant(principal))
    messages += Counter(run_on_bus(settings, lambda bus: erase_tenant_messages(bus, name)))
    _print_deletions(options, rows, messages)


def _delete_scope(
    options: CommonOptions, tenant: str, text: str, recursive: bool, yes: bool
) -> None:
    from reverie.bus.erasure import ErasureTarget, erase_scope_messages
    from reverie.domain.access.scopes import parse_scope
    from reverie.store.platform.administration import AdministrationStore, find_whole_project

    scope, settings = parse_scope(text), options.settings()
    resolve_tenant_id(settings, tenant)
    patterns = [scope, f"{scope}/*"] if recursive else [scope]
    _confirm_deletion(f"everything of {' and '.join(patterns)} in the tenant {tenant}", yes)
    rows = _delete_rows(
        settings, tenant, lambda store, principal: store.delete_scope(principal, patterns)
    )

    async def erase_messages(database: Database, principal: Principal) -> Counter[str]:
        store = AdministrationStore(database)
        target = ErasureTarget(
            patterns,
            find_whole_project(patterns),
            lambda ids: store.find_existing_ids(principal, ids),
        )

        async def erase(bus: MessageBus) -> Counter[str]:
            counters = [counter async for counter, _ in erase_scope_messages(bus, tenant, target)]
            return sum(counters, Counter())

        return await run_on_bus_async(settings, erase)

    _print_deletions(options, rows, run_for_tenant(settings, tenant, erase_messages))


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


def _print_pages(
    options: CommonOptions,
    tenant: str,
    key: str,
    read_page: Callable[
        [AdministrationStore, Principal, str | None, int], Awaitable[Sequence[Any]]
    ],
) -> None:
    """Prints all pages of a list; `key` is the field that the next page starts after."""
    from reverie.store.platform.administration import AdministrationStore

    async def read_all(database: Database, principal: Principal) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        store, after = AdministrationStore(database), None
        while rows := await read_page(store, principal, after, PAGE_SIZE):
            items += [dict(vars(row)) for row in rows]
            after = items[-1][key]
        return items

    _print_rows(options, run_for_tenant(options.settings(), tenant, read_all))


def _delete_rows(
    settings: Settings,
    tenant: str,
    delete: Callable[[AdministrationStore, Principal], AsyncIterator[Counter[str]]],
) -> Counter[str]:
    """Deletes in batches, and shows the progress."""
    from rich.progress import Progress, SpinnerColumn, TextColumn

    from reverie.store.platform.administration import AdministrationStore

    async def run(database: Database, principal: Principal) -> Counter[str]:
        deleted: Counter[str] = Counter()
        columns = SpinnerColumn(), TextColumn("{task.fields[rows]} rows deleted")
        with Progress(*columns, console=err(), transient=True) as progress:
            task = progress.add_task("", total=None, rows=0)
            async for batch in delete(AdministrationStore(database), principal):
                deleted += batch
                progress.update(task, rows=deleted.total())
        return deleted

    return run_for_tenant(settings, tenant, run)


def _confirm_deletion(subject: str, yes: bool) -> None:
    if not yes:
        confirm(f"Delete {subject} for good?")


def _print_deletions(options: CommonOptions, rows: Counter[str], messages: Counter[str]) -> None:
    result = {"rows": dict(sorted(rows.items())), "messages": dict(messages)}
    counts = [*sorted(rows.items()), *((f"stream {name}", n) for name, n in (+messages).items())]
    items = [{"data": name, "deleted": n} for name, n in counts]
    options.print_result(result, build_table(items, {"data": "data", "deleted": "deleted"}))


def _print_rows(options: CommonOptions, rows: Sequence[dict[str, Any]]) -> None:
    names = rows[0] if rows else ()
    columns = {name: lambda row, name=name: _format_cell(row[name]) for name in names}
    options.print_table(rows, columns)


def _format_cell(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}:{n}" for name, n in sorted(value.items()))
    return "" if value is None else str(value)
