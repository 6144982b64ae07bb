"""`reverie git anchor`: finds the lines and symbols that memories refer to in a clone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.app.common import Home, Json, Sets, out, print_json, resolve_settings

if TYPE_CHECKING:
    from reverie.agent.git.repository import GitRepository
    from reverie.client import AsyncReverie
    from reverie.contracts.memories import GitLocation

PAGE_SIZE = 50


def anchor(
    project: Annotated[
        str | None,
        typer.Option(
            "--project", envvar="REVERIE_PROJECT", help="Whose memories; unset: as the repository."
        ),
    ] = None,
    repo: Annotated[
        Path, typer.Option("--repo", "-C", help="A folder of the clone.", show_default="here")
    ] = Path(),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent; send nothing.")
    ] = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Find the lines and symbols that memories speak of, as the code stood when each was learned.

    Only numbers and names are sent, no source. Memories that have them already are left alone.

    Example: [bold]reverie git anchor --project shop --dry-run[/]
    """
    from reverie.agent.git.repository import open_repository
    from reverie.cli.memory.export_import import endpoint_from_settings
    from reverie.client import AsyncReverie

    clone = open_repository(repo)
    name = resolve_project(clone, project)
    settings = resolve_settings(home, sets)
    url, key = endpoint_from_settings(settings)

    async def work() -> list[dict[str, Any]]:
        timeout = settings.request_timeout
        async with AsyncReverie(
            url, key, timeout=timeout, agent="reverie-git", ca=settings.trusted_ca_file
        ) as client:
            return [result async for result in _find_anchors(client, clone, name, dry_run)]

    results = asyncio.run(work())
    print_json(results) if json else _print_anchors(results)


def resolve_project(clone: GitRepository, explicit: str | None) -> str:
    """The project as it is named, here, in `reverie.toml` or in git's configuration; else the
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
    """What was found for each memory that lacks it; sent unless it is only to be shown."""
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
            out().print(f"{result['memory'][-8:]}  {path}: {', '.join(names)}", markup=False)
        for path, spans in result["lines"].items():
            lines = ", ".join(f"{first}-{last}" for first, last in spans)
            out().print(f"{result['memory'][-8:]}  {path}: lines {lines}", markup=False)
    whole_files = sum(bool(result["files"]) for result in results) - len(exact)
    unanchored = len(results) - len(exact) - whole_files
    out().print(
        f"{len(exact)} memories belong to lines, {whole_files} to a whole file, "
        f"{unanchored} to no file of the clone as it was then.",
        markup=False,
    )
