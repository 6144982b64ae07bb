"""Start-up output of `reverie up`: for a terminal, or as JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table

from reverie.cli.app.output import abbreviate_home, err, out, print_json
from reverie.cli.operate.console import create_console_link
from reverie.contracts.tls import LOCAL_CA_PATH
from reverie.embedded.reporting import GATEWAY, Addresses

MEGABYTE = 1_000_000

TRY_IT = """\
[dim]{export}\
{curl} -H "Authorization: Bearer $REVERIE_API_KEY" -H "Content-Type: application/json" \\
  -d '{{"content": "The spare lighthouse key hangs behind the buoy."}}' {gateway}/v1/remember
{curl} -H "Authorization: Bearer $REVERIE_API_KEY" -H "Content-Type: application/json" \\
  -d '{{"query": "Where is the lighthouse key?"}}' {gateway}/v1/recall[/]"""


class UpDisplay:
    """A display for a terminal: a status line during the start, then a summary."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or out()
        self._status = Status("Starting", console=self.console)

    def __enter__(self) -> Self:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def step(self, text: str) -> None:
        """Shows the current step."""
        self._status.update(f"Starting {text}")

    def migrating(self, name: str, number: int, of: int) -> None:
        """Shows the progress of the migrations."""
        self._status.update(f"Migrating the schema, {number} of {of}: {escape(name)}")

    def progress(self, what: str, done: int, total: int) -> None:
        """Shows the progress of a download."""
        share = f"{done / MEGABYTE:.0f} of {total / MEGABYTE:.0f} MB" if total else ""
        self._status.update(f"Fetching {escape(what)} {share}")

    def note(self, text: str) -> None:
        """Prints a note."""
        self.console.print(f"[yellow]note[/]  {escape(text)}")

    def failed(self, name: str, log: Path, lines: str) -> None:
        """Prints the end of the log of a component that did not start."""
        self._status.stop()
        self.console.print(f"[red]{name} did not start.[/] The end of {abbreviate_home(log)}:")
        self.console.print(lines or "(it is empty)", markup=False, style="dim")

    def up(self, addresses: Addresses) -> None:
        """Prints the summary."""
        self._status.stop()
        self.console.print("\n[bold green]Reverie is up.[/]\n")
        self.console.print(_address_table(addresses))
        self._print_key(addresses)
        self.print_console_link(addresses)
        self.console.print("\n[dim]Ctrl-C stops everything.[/]")

    def print_console_link(self, addresses: Addresses) -> None:
        """Prints a link that signs in to the console once."""
        ca_file = addresses.home / LOCAL_CA_PATH
        ca = str(ca_file) if addresses.gateway.startswith("https") and ca_file.exists() else ""
        link = create_console_link(addresses.gateway, addresses.api_key, ca)
        if link is not None:
            self.console.print("\nLook at it in a browser (the link works once):\n")
            self.console.print(f"  {link}", soft_wrap=True, markup=False)

    def stopping(self) -> None:
        """Shows that Reverie is stopping."""
        self._status.update("Stopping")
        self._status.start()

    def _print_key(self, addresses: Addresses) -> None:
        if addresses.new_key:
            location = (
                f"stored in {abbreviate_home(addresses.key_file)}"
                if addresses.key_file
                else "shown only once"
            )
            self.console.print(f"\nYour key, {location}:\n")
            self.console.print(f"  [bold]{addresses.api_key}[/]\n\nTry it:\n")
        else:
            self.console.print("\nTry it:\n")
        key = f"$(cat {abbreviate_home(addresses.key_file)})" if addresses.key_file else "..."
        is_set = os.environ.get("REVERIE_API_KEY", "") == addresses.api_key
        export = "" if is_set else f"export REVERIE_API_KEY={key}\n"
        curl = "curl"
        if addresses.gateway.startswith("https"):
            curl += f" --cacert {abbreviate_home(addresses.home / LOCAL_CA_PATH)}"
        self.console.print(TRY_IT.format(export=export, gateway=addresses.gateway, curl=curl))


def _address_table(addresses: Addresses) -> Table:
    table = Table.grid(padding=(0, 3))
    table.add_row("  [bold]gateway[/]", f"[bold]{addresses.gateway}[/]", "point your agent here")
    for name, url in addresses.services.items():
        if name != GATEWAY:
            table.add_row(f"  {name}", url)
    table.add_row("  postgres", addresses.postgres)
    table.add_row("  nats", addresses.nats)
    table.add_row("  data", abbreviate_home(addresses.home))
    return table


class JsonUpDisplay:
    """A display for scripts: one JSON document when all is ready; the rest on standard error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing."""

    def step(self, text: str) -> None:
        """Prints nothing."""

    def migrating(self, name: str, number: int, of: int) -> None:
        """Prints nothing."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Prints nothing."""

    def note(self, text: str) -> None:
        """Prints a note."""
        err().print(text, markup=False)

    def failed(self, name: str, log: Path, lines: str) -> None:
        """Prints the end of the log of a component that did not start."""
        err().print(f"{name} did not start; the end of {log}:\n{lines}", markup=False)

    def up(self, addresses: Addresses) -> None:
        """Prints the addresses and the path of the key file."""
        key_file = str(addresses.key_file) if addresses.key_file else None
        print_json(addresses.to_dict() | {"key_file": key_file})

    def stopping(self) -> None:
        """Prints nothing."""
