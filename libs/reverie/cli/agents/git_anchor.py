"""`reverie git anchor`: finds the lines and symbols that memories refer to in a clone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.app.gateway_client import open_client
from reverie.cli.app.options import (
    CommonOptions,
    Function,
    common_options,
    dry_run_option,
    folder_option,
)
from reverie.cli.app.output import plural, short_id

if TYPE_CHECKING:
    from reverie.agent.git.repository import GitRepository
    from reverie.client import AsyncReverie
    from reverie.client.transport import Query
    from reverie.contracts.memories.memories import GitLocation

PAGE_SIZE = 50


def clone_options(function: Function) -> Function:
    """Adds `--project` and `--repo`."""
    project = click.option(
        "--project",
        envvar="REVERIE_PROJECT",
        help="The project; default: reverie.toml, git config reverie.project or the repository.",
    )
    return project(folder_option("--repo", "-C", help="A folder of the clone.")(function))


@click.command("anchor")
@clone_options
@dry_run_option
@common_options
def anchor(options: CommonOptions, project: str | None, repo: Path, dry_run: bool) -> None:
    """Find the lines and symbols that memories refer to.

    It reads the code as it was when each memory was learned. It sends line
    numbers and names, no source code. Memories with anchors are skipped.

    Example: reverie git anchor --project shop --dry-run
    """
    import asyncio

    from reverie.agent.git.repository import open_repository

    clone = open_repository(repo)
    name = resolve_project(clone, project)
    settings = options.settings()

    async def work() -> list[dict[str, Any]]:
        async with open_client(settings, "reverie-git") as client:
            return [result async for result in _find_anchors(client, clone, name, dry_run)]

    results = asyncio.run(work())
    options.print_result(results, *_format_anchors(results))


def resolve_project(clone: GitRepository, explicit: str | None) -> str:
    """The given project, else that of `reverie.toml` or of git's configuration, else the
    repository's name."""
    from reverie.contracts.project_file import find_main_root
    from reverie.domain.access.scopes import slugify
    from reverie.runtime.settings.project_file import load_project_file

    folder = Path(find_main_root(str(clone.root)) or clone.root).name
    bare = folder.removesuffix(".git")
    repository = bare if bare != folder else clone.remote_name or bare
    named = explicit or load_project_file(clone.root).project
    name = named or clone.config_value("reverie.project")
    return slugify(name or repository.rpartition("/")[2])


async def _find_anchors(
    client: AsyncReverie, clone: GitRepository, project: str, dry_run: bool
) -> AsyncIterator[dict[str, Any]]:
    """The anchors of each memory without them; they are sent unless this is a dry run."""
    import asyncio

    from reverie.agent.git.anchoring import build_anchor_updates, locate_when_learned

    cursor: str | None = None
    while True:
        query: Query = {"project": project, "limit": PAGE_SIZE, "cursor": cursor}
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
    symbols = place.symbols if place else {}
    lines = place.lines if place else {}
    return {
        "memory": memory["memory"],
        "commit": place.commit if place else None,
        "files": list(place.blobs) if place else [],
        "symbols": {path: [symbol.name for symbol in found] for path, found in symbols.items()},
        "lines": {path: [list(span) for span in spans] for path, spans in lines.items()},
    }


def _format_anchors(results: list[dict[str, Any]]) -> Iterator[str]:
    exact = [result for result in results if result["symbols"] or result["lines"]]
    for result in exact:
        for path, names in result["symbols"].items():
            yield f"{short_id(result['memory'])}  {path}: {', '.join(names)}"
        for path, spans in result["lines"].items():
            lines = ", ".join(f"{first}-{last}" for first, last in spans)
            yield f"{short_id(result['memory'])}  {path}: lines {lines}"
    whole_files = sum(bool(result["files"]) for result in results) - len(exact)
    unanchored = len(results) - len(exact) - whole_files
    yield (
        f"Of {plural(len(results), 'memory')}, lines hold {len(exact)}, whole files {whole_files}, "
        f"and no file of the clone {unanchored}."
    )
