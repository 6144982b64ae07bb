"""`reverie git anchor`: finds the lines and symbols that memories refer to in a clone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.app.async_gateway import open_client
from reverie.cli.app.options import common_options, resolve_settings
from reverie.cli.app.output import out, print_json, short_id

if TYPE_CHECKING:
    from reverie.agent.git.repository import GitRepository
    from reverie.client import AsyncReverie
    from reverie.contracts.memories import GitLocation

PAGE_SIZE = 50


@click.command("anchor")
@click.option("--project", envvar="REVERIE_PROJECT", help="The project; default: the repository's.")
@click.option(
    "--repo",
    "-C",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default="here",
    help="A folder of the clone.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and stop.")
@common_options
def anchor(
    project: str | None,
    repo: Path,
    dry_run: bool,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Find the lines and symbols that memories refer to.

    It reads the code as it was when each memory was learned. It sends line
    numbers and names, no source code. Memories with anchors are skipped.

    Example: reverie git anchor --project shop --dry-run
    """
    import asyncio

    from reverie.agent.git.repository import open_repository

    clone = open_repository(repo)
    name = resolve_project(clone, project)
    settings = resolve_settings(home, sets)

    async def work() -> list[dict[str, Any]]:
        async with open_client(settings, "reverie-git") as client:
            return [result async for result in _find_anchors(client, clone, name, dry_run)]

    results = asyncio.run(work())
    print_json(results) if json else _print_anchors(results)


def resolve_project(clone: GitRepository, explicit: str | None) -> str:
    """The given project, else that of `reverie.toml` or of git's configuration, else the
    repository's name."""
    from reverie.cli.app.gateway_discovery import read_project_name
    from reverie.domain.access.scopes import slugify

    bare = clone.root.name.removesuffix(".git")
    repository = bare if bare != clone.root.name else clone.remote_name or bare
    name = explicit or read_project_name(clone.root) or clone.config_value("reverie.project")
    return slugify(name or repository.rpartition("/")[2])


async def _find_anchors(
    client: AsyncReverie, clone: GitRepository, project: str, dry_run: bool
) -> AsyncIterator[dict[str, Any]]:
    """The anchors of each memory without them; they are sent unless this is a dry run."""
    import asyncio

    from reverie.agent.git.anchoring import build_anchor_updates, locate_when_learned

    cursor: str | None = None
    while True:
        query: dict[str, str | int | None] = {
            "project": project,
            "limit": PAGE_SIZE,
            "cursor": cursor,
        }
        page = (await client.call("GET", "/v1/git/anchors", query=query)).body
        places = [
            (memory, await asyncio.to_thread(locate_when_learned, clone, memory))
            for memory in page["items"]
        ]
        anchors = build_anchor_updates(places)
        if anchors and not dry_run:
            body = {"project": project, "anchors": anchors}
            await client.call("POST", "/v1/git/anchors", body=body)
        for memory, place in places:
            yield _anchor_document(memory, place)
        cursor = page["next"]
        if cursor is None:
            return


def _anchor_document(memory: dict[str, Any], place: GitLocation | None) -> dict[str, Any]:
    return {
        "memory": memory["memory"],
        "commit": place.commit if place else None,
        "files": list(place.blobs) if place else [],
        "symbols": {
            path: [item.name for item in entries] for path, entries in place.symbols.items()
        }
        if place
        else {},
        "lines": {path: [list(item) for item in entries] for path, entries in place.lines.items()}
        if place
        else {},
    }


def _print_anchors(results: list[dict[str, Any]]) -> None:
    exact = [result for result in results if result["symbols"] or result["lines"]]
    for result in exact:
        for path, names in result["symbols"].items():
            out().print(f"{short_id(result['memory'])}  {path}: {', '.join(names)}", markup=False)
        for path, spans in result["lines"].items():
            lines = ", ".join(f"{first}-{last}" for first, last in spans)
            out().print(f"{short_id(result['memory'])}  {path}: lines {lines}", markup=False)
    whole_files = sum(bool(result["files"]) for result in results) - len(exact)
    unanchored = len(results) - len(exact) - whole_files
    out().print(
        f"{len(exact)} memories belong to lines, {whole_files} to a whole file, "
        f"{unanchored} to no file of the clone.",
        markup=False,
    )
