"""`reverie git anchor`: which lines and symbols memories speak of, found in a clone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.common import Home, Json, Sets, out, print_json, settings_from

if TYPE_CHECKING:
    from reverie.agent.git_repo import Repo
    from reverie.client import AsyncReverie
    from reverie.contracts.memories import GitPlace

AT_ONCE = 50


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
    from reverie.agent.git_repo import open_repo
    from reverie.cli.carry import gateway_of
    from reverie.client import AsyncReverie

    clone = open_repo(repo)
    name = project_of(clone, project)
    settings = settings_from(home, sets)
    url, key = gateway_of(settings)

    async def work() -> list[dict[str, Any]]:
        timeout = settings.request_timeout
        async with AsyncReverie(
            url, key, timeout=timeout, agent="reverie-git", ca=settings.authority
        ) as at:
            return [one async for one in _anchored(at, clone, name, dry_run)]

    found = asyncio.run(work())
    print_json(found) if json else _say(found)


def project_of(clone: Repo, named: str | None) -> str:
    """The project as it is named, here, in `reverie.toml` or in git's configuration; else the
    repository's name."""
    from reverie.cli.near import named_in
    from reverie.domain.scopes import slug

    bare = clone.root.name.removesuffix(".git")
    found = bare if bare != clone.root.name else clone.remote or bare
    said = named or named_in(clone.root) or clone.setting("reverie.project")
    return slug(said or found.rpartition("/")[2])


async def _anchored(
    at: AsyncReverie, clone: Repo, project: str, dry_run: bool
) -> AsyncIterator[dict[str, Any]]:
    """What was found for each memory that lacks it; sent unless it is only to be shown."""
    from reverie.agent.anchoring import place_then, told_of

    cursor: str | None = None
    while True:
        query: dict[str, str | int | None] = {
            "project": project,
            "limit": AT_ONCE,
            "cursor": cursor,
        }
        page = (await at.call("GET", "/v1/git/anchors", query=query)).body
        places = [(one, await asyncio.to_thread(place_then, clone, one)) for one in page["items"]]
        sent = told_of(places)
        if sent and not dry_run:
            body = {"project": project, "anchors": sent}
            await at.call("POST", "/v1/git/anchors", body=body)
        for one, place in places:
            yield _told(one, place)
        cursor = page["next"]
        if cursor is None:
            return


def _told(memory: dict[str, Any], place: GitPlace | None) -> dict[str, Any]:
    return {
        "memory": memory["memory"],
        "commit": place.commit if place else None,
        "files": list(place.blobs) if place else [],
        "symbols": {p: [s.name for s in those] for p, those in place.symbols.items()}
        if place
        else {},
        "lines": {p: [list(s) for s in those] for p, those in place.lines.items()} if place else {},
    }


def _say(found: list[dict[str, Any]]) -> None:
    exact = [one for one in found if one["symbols"] or one["lines"]]
    for one in exact:
        for path, names in one["symbols"].items():
            out().print(f"{one['memory'][-8:]}  {path}: {', '.join(names)}", markup=False)
        for path, spans in one["lines"].items():
            lines = ", ".join(f"{first}-{last}" for first, last in spans)
            out().print(f"{one['memory'][-8:]}  {path}: lines {lines}", markup=False)
    whole = sum(bool(one["files"]) for one in found) - len(exact)
    none = len(found) - len(exact) - whole
    out().print(
        f"{len(exact)} memories belong to lines, {whole} to a whole file, "
        f"{none} to no file of the clone as it was then.",
        markup=False,
    )
