"""`reverie import mem0` and `reverie import hindsight`: exports of other memory systems."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import click

from reverie.cli.app.options import CommonOptions, common_options, dry_run_option
from reverie.cli.memory.export_import import run_import
from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.kinds import KIND_POLICIES, Kind
from reverie.domain.formats.mem0 import MEM0_SCOPES, place_entities

Record = dict[str, Any]
ReadExport = Callable[[Path, str | None], Iterator[Record]]

_HEADER: Record = {"type": "header", "format": "reverie", "version": 1}
_MEM0_DETAILS = ("hash", "actor_id", "role")
_HINDSIGHT_DETAILS = (
    *("fact_type", "context", "document_id", "entities", "occurred_start", "occurred_end"),
    *("proof_count", "sources"),
)

_path_argument = click.argument(
    "path", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="The export."
)
_scope_option = click.option("--scope", help="The scope of memories for which the file names none.")


@click.command("mem0")
@_path_argument
@_scope_option
@dry_run_option
@common_options
def import_mem0(options: CommonOptions, path: Path, scope: str | None, dry_run: bool) -> None:
    """Import memories of mem0: the JSON of all memories, as its client returns it.

    Users, agents, apps and runs become the scopes user/, agent/, project/ and topic/. Ids and
    times are kept, and a repeated import of the file changes nothing. A memory without a time gets
    that of the file.

    Example: reverie import mem0 memories.json --dry-run

    Exit codes: 1 if a memory conflicts with a stored one, 2 if the file is refused; for the
    others see `reverie --help`.
    """
    _import(options, path, scope, dry_run, read_mem0)


@click.command("hindsight")
@_path_argument
@_scope_option
@dry_run_option
@common_options
def import_hindsight(options: CommonOptions, path: Path, scope: str | None, dry_run: bool) -> None:
    """Import memories of Hindsight: the archive of a bank's export, or a list of its memories.

    A bank becomes the scope project/; a list names none, so give `--scope`. Facts and observations
    are imported, documents are not. A repeated import of the file changes nothing. A memory without
    a time gets that of the file.

    Example: reverie import hindsight bank.zip --dry-run

    Exit codes: 1 if a memory conflicts with a stored one, 2 if the file is refused; for the
    others see `reverie --help`.
    """
    _import(options, path, scope, dry_run, read_hindsight)


def _import(
    options: CommonOptions, path: Path, scope: str | None, dry_run: bool, read: ReadExport
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "memories.jsonl"
        with lines.open("w", encoding="utf-8") as file:
            try:
                for record in (_HEADER, *read(path, scope)):
                    file.write(f"{json.dumps(record)}\n")
            except (ValueError, TypeError, KeyError, AttributeError, zipfile.BadZipFile) as error:
                raise InvalidInput("PATH", f"{path} is no such export: {error!r}") from None
        run_import(options, lines, "merge", dry_run, None)


def read_mem0(path: Path, scope: str | None) -> Iterator[Record]:
    """The records of a file: a list of memories, or an object that holds one in `results`."""
    for item in _items(json.loads(path.read_bytes()), "results"):
        entities = {name: str(item[name]) for name in MEM0_SCOPES if item.get(name)}
        place, tags = place_entities(entities)
        record = _record(
            "mem0",
            item["id"],
            content=item["memory"],
            scope=_require_scope(place or scope),
            tags=[*tags, *(item.get("categories") or [])],
            metadata={**(item.get("metadata") or {}), **_details(item, _MEM0_DETAILS)},
            times=[item.get("created_at"), item.get("updated_at")],
            default_time=_written(path),
        )
        if expires := item.get("expiration_date"):
            # It is valid on that day, too.
            end = date.fromisoformat(expires) + timedelta(days=1)
            record["valid_to"] = datetime(end.year, end.month, end.day, tzinfo=UTC).isoformat()
        yield record


def read_hindsight(path: Path, scope: str | None) -> Iterator[Record]:
    """The records of an archive, or of the JSON list of a bank's memories."""
    written = _written(path)
    if not zipfile.is_zipfile(path):
        for item in _items(json.loads(path.read_bytes()), "items"):
            yield _hindsight_record(item, item["id"], _require_scope(scope), written)
        return
    with zipfile.ZipFile(path) as archive:
        bank = json.loads(archive.read("manifest.json"))["source_bank_id"]
        place = f"project/{bank}"
        for name in sorted(archive.namelist()):
            if name.startswith("documents/") and name.endswith(".json"):
                document = json.loads(archive.read(name))
                for number, fact in enumerate(document.get("facts") or []):
                    own = f"{bank}/{document['id']}/{number}"
                    whole = {
                        **fact,
                        "document_id": document["id"],
                        "tags": [*(document.get("tags") or []), *(fact.get("tags") or [])],
                        "created_at": fact.get("created_at") or document.get("created_at"),
                    }
                    yield _hindsight_record(whole, fact.get("source_id") or own, place, written)
            elif name == "observations.json":
                for number, item in enumerate(json.loads(archive.read(name))):
                    own = f"{bank}/observations/{number}"
                    whole = {"fact_type": "observation", **item}
                    yield _hindsight_record(whole, item.get("source_id") or own, place, written)


def _hindsight_record(
    item: Mapping[str, Any], own_id: str, scope: str, written: datetime
) -> Record:
    said = (item.get(name) for name in ("mentioned_at", "created_at", "date", "event_date"))
    record = _record(
        "hindsight",
        own_id,
        content=item["text"],
        scope=scope,
        tags=item.get("tags") or [],
        metadata={**(item.get("metadata") or {}), **_details(item, _HINDSIGHT_DETAILS)},
        times=[next(filter(None, said), None), item.get("updated_at")],
        default_time=written,
    )
    return record | ({"status": "archived"} if item.get("state") == "invalidated" else {})


def _record(
    system: str,
    own_id: str,
    *,
    content: str,
    scope: str,
    tags: Iterable[str],
    metadata: Mapping[str, Any],
    times: list[str | None],
    default_time: datetime,
) -> Record:
    """The line of a memory. `times`: when it was made, and changed last."""
    from reverie.contracts.memories.system_metadata import RESERVED_METADATA

    # What names the services read themselves belongs to the other system.
    own = {
        f"{system}_{name}" if name in RESERVED_METADATA else name: metadata[name]
        for name in metadata
    }
    created = _time(times[0] or times[1]) or default_time
    return {
        "type": "memory",
        "id": _uuid(system, own_id),
        "scope": scope,
        "kind": Kind.CONTEXT.value,
        "tier": KIND_POLICIES[Kind.CONTEXT].tier.value,
        "status": "active",
        "version": 1,
        "content": content,
        "confidence": 1.0,
        "pinned": False,
        "source": system,
        "created": created.isoformat(),
        "updated": max(created, _time(times[1]) or created).isoformat(),
        "tags": list(dict.fromkeys(tags)),
        "metadata": {**own, f"{system}_id": str(own_id)},
    }


def _items(value: Any, name: str) -> list[Any]:
    items = value.get(name) if isinstance(value, dict) else value
    if not isinstance(items, list):
        raise ValueError(f"it holds no list of {name}")
    return items


def _require_scope(scope: str | None) -> str:
    if scope is None:
        raise InvalidInput("--scope", "the file does not say whose memories these are: give it")
    return scope


def _details(item: Mapping[str, Any], names: Iterable[str]) -> Record:
    return {name: item[name] for name in names if item.get(name)}


def _uuid(system: str, own_id: str) -> str:
    """The other system's id, if it is a UUID; else one that is the same in each import."""
    try:
        return str(UUID(own_id))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"{system}:{own_id}"))


def _written(path: Path) -> datetime:
    """The file's own time, which is the same in each import of this file, though not of a copy."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _time(text: str | None) -> datetime | None:
    if not text:
        return None
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
