"""Commands that archive, forget, restore and erase a memory."""

from __future__ import annotations

import click

from reverie.cli.app.gateway_client import quote_segment
from reverie.cli.app.options import (
    CommonOptions,
    common_options,
    drop_unset,
    memory_id_argument,
    reason_option,
    yes_option,
)
from reverie.cli.app.output import confirm, plural, short_id


@click.command("archive")
@memory_id_argument
@common_options
def archive(options: CommonOptions, id: str) -> None:
    """Archive a memory: it is found only when asked for.

    Example: reverie archive 3fa9c1d2
    """
    response = options.gateway().request("POST", f"/v1/memories/{quote_segment(id)}/archive")
    options.print_result(response, f"{short_id(response['id'])} is archived")


@click.command("forget")
@memory_id_argument
@common_options
def forget(options: CommonOptions, id: str) -> None:
    """Forget a memory: no answer has it, and its text is erased unless it is restored in time.

    Example: reverie forget 3fa9c1d2
    """
    response = options.gateway().request("DELETE", f"/v1/memories/{quote_segment(id)}")
    until = response["restorable_until"]
    name = short_id(response["id"])
    remedy = f"; until {until[:10]} `reverie restore {name}` brings it back" if until else ""
    options.print_result(response, f"{name} was forgotten{remedy}")


@click.command("restore")
@memory_id_argument
@common_options
def restore(options: CommonOptions, id: str) -> None:
    """Restore a memory that was archived, or forgotten a short time ago.

    Example: reverie restore 3fa9c1d2
    """
    response = options.gateway().request("POST", f"/v1/memories/{quote_segment(id)}/restore")
    options.print_result(response, f"{short_id(response['id'])} is {response['status']} again")


@click.command("erase")
@memory_id_argument
@reason_option
@yes_option
@common_options
def erase(options: CommonOptions, id: str, reason: str | None, yes: bool) -> None:
    """Erase a memory at once and for good, and say what was removed.

    Example: reverie erase 3fa9c1d2 --yes
    """
    if not yes:
        confirm(f"Erase {id} for good? Nothing but a backup can bring it back.")
    path = f"/v1/memories/{quote_segment(id)}/erase"
    response = options.gateway().request("POST", path, body=drop_unset({"reason": reason}))
    removed = ", ".join(f"{count} {table}" for table, count in response["rows"].items())
    lines = [f"{short_id(response['id'])} is erased: {removed or 'nothing was left'}"]
    if quoting := response["still_quoted_in"]:
        names = ", ".join(map(short_id, quoting))
        lines.append(f"still quoted in {plural(len(quoting), 'memory')}: {names}")
    lines.append(f"backups from before {response['in_backups_before'][:19]} still hold it")
    options.print_result(response, "\n".join(lines))
