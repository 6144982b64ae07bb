"""`reverie admin`: keys, projects, scopes and tenants, through the migration address."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from reverie.cli import keys, webhooks
from reverie.cli.admin_settings import settings
from reverie.cli.audit import audit
from reverie.cli.backup import backup, restore
from reverie.cli.common import Home, Json, Sets, err, out, print_json, settings_from
from reverie.cli.operating import run_on, tenant_number
from reverie.domain.access import Principal
from reverie.domain.errors import Invalid

if TYPE_CHECKING:
    from reverie.bus.port import Bus
    from reverie.runtime.settings import Settings
    from reverie.store.administration import Administration
    from reverie.store.database import Database

T = TypeVar("T")
PAGE = 500

app = typer.Typer(no_args_is_help=True, help="Look after keys, projects, scopes and tenants.")
app.add_typer(webhooks.app, name="webhooks")
projects = typer.Typer(no_args_is_help=True, help="List and delete projects.")
scopes = typer.Typer(no_args_is_help=True, help="List and delete scopes.")
tenants = typer.Typer(no_args_is_help=True, help="List, add and delete tenants.")
app.add_typer(keys.app, name="keys")
app.add_typer(projects, name="projects")
app.add_typer(scopes, name="scopes")
app.add_typer(tenants, name="tenants")
app.command("settings")(settings)
app.command("audit")(audit)
app.command("backup")(backup)
app.command("restore")(restore)

Tenant = Annotated[str, typer.Option("--tenant", help="Whose.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Below = Annotated[bool, typer.Option("--below", help="With all scopes below it.")]
Work = Callable[["Administration", Principal], Awaitable[T]]
Batches = Callable[["Administration", Principal], AsyncIterator[Counter[str]]]


@projects.command("list")
def list_projects(
    tenant: Tenant = "default", home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Projects, with what lies in each and below it.

    Example: [bold]reverie admin projects list --tenant acme[/]
    """
    pages = _pages(lambda a, who, after: a.projects(who, after, PAGE), lambda one: one.project)
    _show(_run(settings_from(home, sets), tenant, pages), json)


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
    from reverie.domain.scopes import slug

    _delete_scope(settings_from(home, sets), tenant, f"project/{slug(name)}", True, yes, json)


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
    from reverie.domain.scopes import slug
    from reverie.store.briefing import Briefings

    project, asked = slug(name), _numbers(change or [])

    async def work(database: Database, who: Principal) -> dict[str, object]:
        kept = Briefings(database)
        if asked or reset:
            return vars(await kept.set_budgets(who, project, None if reset else asked))
        return vars(await kept.budgets(who, project))

    found = run_on(settings_from(home, sets), tenant, work)
    _show([{"project": project, **found}], json)


@scopes.command("list")
def list_scopes(
    tenant: Tenant = "default", home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Scopes, with their memories by kind and by status.

    Example: [bold]reverie admin scopes list --json[/]
    """
    pages = _pages(lambda a, who, after: a.scopes(who, after, PAGE), lambda one: one.scope)
    _show(_run(settings_from(home, sets), tenant, pages), json)


@scopes.command("delete")
def delete_scope(
    scope: Annotated[str, typer.Argument(help="The scope, as agent/ann.")],
    below: Below = False,
    tenant: Tenant = "default",
    yes: Yes = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Delete everything of a scope, for ever.

    Example: [bold]reverie admin scopes delete project/shop --below[/]
    """
    _delete_scope(settings_from(home, sets), tenant, scope, below, yes, json)


@tenants.command("list")
def list_tenants(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """All tenants.

    Example: [bold]reverie admin tenants list[/]
    """
    from reverie.cli.place import admin_url
    from reverie.store.bootstrap import tenant_names

    found = tenant_names(admin_url(settings_from(home, sets)))
    _show([{"id": number, "tenant": name} for number, name in found], json)


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
    from reverie.cli.place import admin_url
    from reverie.store import bootstrap

    number = bootstrap.add_tenant(admin_url(settings_from(home, sets)), name)
    _show([{"id": number, "tenant": name}], json)


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
    from reverie.cli.place import admin_url
    from reverie.store import bootstrap

    asked = keys.limits_of(limit) if limit else None
    held = bootstrap.limit_tenant(admin_url(settings_from(home, sets)), name, asked)
    _show([{"tenant": name, **held}], json)


@tenants.command("delete")
def delete_tenant(
    name: Annotated[str, typer.Argument(help="The tenant.")],
    yes: Yes = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Delete a tenant with every row and every message of it, for ever.

    Its keys work at most `key_cache_seconds` longer, and for nothing but empty
    answers.

    Example: [bold]reverie admin tenants delete acme --yes[/]
    """
    from reverie.bus.forget import forget_tenant
    from reverie.cli.dead import on_bus

    settings = settings_from(home, sets)
    tenant_number(settings, name)
    _sure(f"the tenant {name} with everything in it", yes)
    messages = Counter(on_bus(settings, lambda bus: forget_tenant(bus, name)))
    rows = _run(settings, name, _counted(lambda admin, who: admin.delete_tenant(who)))
    messages += Counter(on_bus(settings, lambda bus: forget_tenant(bus, name)))
    _tell(rows, messages, json)


def _delete_scope(
    settings: Settings, tenant: str, text: str, below: bool, yes: bool, json: bool
) -> None:
    from reverie.bus.forget import Lost, forget_scopes
    from reverie.cli.dead import on_bus_now
    from reverie.domain.scopes import parse_scope
    from reverie.store.administration import whole_project

    scope = parse_scope(text)
    tenant_number(settings, tenant)
    patterns = [scope, f"{scope}/*"] if below else [scope]
    _sure(f"everything of {' and '.join(patterns)} in the tenant {tenant}", yes)
    rows = _run(settings, tenant, _counted(lambda a, who: a.delete_scope(who, patterns)))

    async def forget(admin: Administration, who: Principal) -> Counter[str]:
        lost = Lost(patterns, whole_project(patterns), lambda ids: admin.standing(who, ids))

        async def on(bus: Bus) -> Counter[str]:
            gone = [one async for one, _ in forget_scopes(bus, tenant, lost)]
            return sum(gone, Counter())

        return await on_bus_now(settings, on)

    _tell(rows, _run(settings, tenant, forget), json)


def _numbers(changes: Sequence[str]) -> dict[str, int]:
    """`PART=TOKENS` read. Raises `Invalid` naming what is none."""
    from reverie.domain.budgets import DEFAULT

    found = {}
    for one in changes:
        name, _, number = one.partition("=")
        if name not in vars(DEFAULT) or not number.isdecimal():
            raise Invalid(
                "--change", f"{one!r} is not one of {', '.join(vars(DEFAULT))} = a number"
            )
        found[name] = int(number)
    return found


def _run(settings: Settings, tenant: str, work: Work[T]) -> T:
    """Administration of one tenant."""
    from reverie.store.administration import Administration

    return run_on(settings, tenant, lambda database, who: work(Administration(database), who))


def _pages(
    page: Callable[[Administration, Principal, str | None], Awaitable[Sequence[T]]],
    place: Callable[[T], str],
) -> Work[list[dict[str, object]]]:
    """Reads a list to its end; `place` tells where a page ended."""

    async def run(admin: Administration, who: Principal) -> list[dict[str, object]]:
        found: list[dict[str, object]] = []
        after = None
        while rows := await page(admin, who, after):
            found += [dict(vars(one)) for one in rows]
            after = place(rows[-1])
        return found

    return run


def _counted(batches: Batches) -> Work[Counter[str]]:
    """Does batches of a deletion and shows how far they are."""
    from rich.progress import Progress, SpinnerColumn, TextColumn

    async def run(admin: Administration, who: Principal) -> Counter[str]:
        gone: Counter[str] = Counter()
        columns = SpinnerColumn(), TextColumn("{task.fields[rows]} rows deleted")
        with Progress(*columns, console=err(), transient=True) as progress:
            task = progress.add_task("", total=None, rows=0)
            async for batch in batches(admin, who):
                gone += batch
                progress.update(task, rows=gone.total())
        return gone

    return run


def _sure(what: str, yes: bool) -> None:
    if not yes:
        typer.confirm(f"Delete {what}, for ever?", abort=True, err=True)


def _tell(rows: Counter[str], messages: Counter[str], json: bool) -> None:
    if json:
        print_json({"rows": dict(sorted(rows.items())), "messages": dict(messages)})
        return
    held = [*sorted(rows.items()), *((f"stream {name}", n) for name, n in (+messages).items())]
    _show([{"what": name, "deleted": n} for name, n in held], json)


def _show(found: Sequence[dict[str, object]], json: bool) -> None:
    if json:
        print_json(list(found))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(*(found[0] if found else ()), box=None)
    for one in found:
        table.add_row(*(Text(_cell(value)) for value in one.values()))
    out().print(table if found else "Nothing there.")


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}:{n}" for name, n in sorted(value.items()))
    return "" if value is None else str(value)
