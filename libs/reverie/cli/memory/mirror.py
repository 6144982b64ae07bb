"""`reverie mirror`: keeps a folder of readable files in step with memory, both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from reverie.cli.app.errors import EXIT_CODES_HELP, FAILED
from reverie.cli.app.gateway_client import GatewayClient, GatewayError
from reverie.cli.app.options import CommonOptions, common_options, dry_run_option, scopes_option
from reverie.cli.app.output import err, out, print_json
from reverie.domain.core.errors import ReverieError

if TYPE_CHECKING:
    from reverie.agent.mirror.sync import MirrorStep

MAX_MEMORIES = 1_000_000
WATCH_SECONDS = 30
"""Seconds between two looks at memory; files are looked at when they change."""
_NODES = frozenset({"file", "entity"})


@dataclass
class GatewayMemories:
    """The memories of a gateway: all that the key may read, or those of some scopes."""

    client: GatewayClient
    scopes: Sequence[str] = ()

    def list_active(self) -> list[dict[str, Any]]:
        """All active memories, without files and entities."""
        queries = [{"scope": scope} for scope in self.scopes] or [{}]
        found = [
            memory
            for query in queries
            for memory in self.client.list_items(
                "/v1/memories", {**query, "status": "active"}, MAX_MEMORIES
            )
            if memory["kind"] not in _NODES
        ]
        return list({memory["id"]: memory for memory in found}.values())

    def get(self, id: str) -> dict[str, Any] | None:
        """An active memory; None if it is gone."""
        try:
            memory: dict[str, Any] = self.client.request("GET", f"/v1/memories/{id}")
        except GatewayError as error:
            if error.problem.get("code") == "not_found":
                return None
            raise
        is_here = memory["status"] == "active" and memory["id"] == id
        return memory if is_here else None

    def remember(self, body: Mapping[str, Any]) -> tuple[str, int]:
        """Stores a memory; returns its id and version."""
        stored = self.client.request("POST", "/v1/remember", body=dict(body))
        return str(stored["id"]), int(stored["version"])

    def edit(self, id: str, body: Mapping[str, Any], version: int) -> int:
        """Edits a memory if it still has that version; returns the new version."""
        path = f"/v1/memories/{id}"
        edited = self.client.request("PATCH", path, body=dict(body), version=version)
        return int(edited["version"])

    def archive(self, id: str, version: int) -> None:
        """Archives a memory if it still has that version."""
        self.client.request("POST", f"/v1/memories/{id}/archive", version=version)


@click.command("mirror", epilog=EXIT_CODES_HELP)
@click.argument("folder", type=click.Path(path_type=Path), help="The folder of the files.")
@scopes_option
@click.option(
    "--prefer",
    type=click.Choice(["file", "memory"]),
    help="The side that wins if both changed; the text of the other is kept.",
)
@click.option(
    "--removals", is_flag=True, help="Archive the memories of removed files, even of many at once."
)
@click.option("--watch", is_flag=True, help="Go on until Ctrl-C.")
@dry_run_option
@common_options
def mirror(
    options: CommonOptions,
    folder: Path,
    scopes: tuple[str, ...],
    prefer: Literal["file", "memory"] | None,
    removals: bool,
    watch: bool,
    dry_run: bool,
) -> None:
    """Keep a folder of readable files in step with memory, both ways.

    Each memory is a file. Edit one, and its memory changes; add one with front
    matter, and it is remembered; remove one, and its memory is archived. What
    was edited on both sides is kept on both, and waits for you.

    Example: reverie mirror notes --scope project/shop

    Exit codes: 1 if there are conflicts; for the others see `reverie --help`.
    """
    from reverie.agent.mirror.folder import MirrorFolder
    from reverie.agent.mirror.sync import MirrorSync

    memories = GatewayMemories(options.gateway(), scopes)

    def run() -> list[MirrorStep]:
        return MirrorSync(memories, MirrorFolder(folder), prefer, removals, dry_run).run()

    if watch:
        with suppress(KeyboardInterrupt):
            _watch(options, folder, run)
        return
    steps = run()
    _print_steps(options, steps)
    if any(step.action in {"conflict", "rejected"} for step in steps):
        raise click.exceptions.Exit(FAILED)


def _watch(options: CommonOptions, folder: Path, run: Any) -> None:
    """Runs now, after each change of a file, and from time to time for memory."""
    from watchfiles import watch

    folder.mkdir(parents=True, exist_ok=True)
    shown: list[MirrorStep] = []
    waiting = watch(
        folder,
        debounce=600,
        rust_timeout=WATCH_SECONDS * 1000,
        yield_on_timeout=True,
        raise_interrupt=True,
    )
    while True:
        try:
            steps = run()
        except ReverieError as error:
            err().print(f"reverie: {error}", markup=False)
            steps = shown
        _print_steps(options, [step for step in steps if step not in shown])
        # What waits for a person is said once.
        shown = [step for step in steps if step.action in {"conflict", "rejected"}]
        next(waiting)


def _print_steps(options: CommonOptions, steps: Sequence[MirrorStep]) -> None:
    if options.json:
        print_json([vars(step) for step in steps])
        return
    for step in steps:
        console = err() if step.action in {"conflict", "rejected"} else out()
        reason = f" ({step.reason})" if step.reason else ""
        console.print(f"{step.action:10} {step.path}{reason}", markup=False)
