"""Copies of whole streams, taken from a running server and given to another.

See "Snapshot and restore" in the JetStream wire API; the driver has no calls for it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO

import nats.errors
from nats.aio.client import Client

from reverie.bus.credentials import NOBODY, Credentials
from reverie.bus.streams import STREAMS, servers
from reverie.domain.errors import Conflict, Unavailable

CHUNK = 64 * 1024
SECONDS = 15.0
"""That the server may take for one piece."""


async def take_all(url: str, folder: Path, credentials: Credentials = NOBODY) -> dict[str, int]:
    """Writes each stream of ours, with its consumers, to `folder`; messages by stream.

    Raises `Unavailable`.
    """
    taken = {}
    async with _connected(url, credentials) as client:
        for spec in STREAMS:
            told = await _taken(client, spec.name, folder / f"{spec.name}.snapshot")
            (folder / f"{spec.name}.json").write_text(json.dumps(told, indent=2) + "\n")
            taken[spec.name] = int(told["state"]["messages"])
    return taken


async def give_all(url: str, folder: Path, credentials: Credentials = NOBODY) -> dict[str, int]:
    """Puts each stream in `folder` in place of that of the server; messages by stream.

    Raises `Unavailable`, and `Conflict` where the server does not take one.
    """
    given = {}
    async with _connected(url, credentials) as client:
        for described in (folder / f"{spec.name}.json" for spec in STREAMS):
            told = json.loads(described.read_text())
            await _asked(client, f"STREAM.DELETE.{described.stem}", {}, missing=True)
            await _given(client, described.stem, told, described.with_suffix(".snapshot"))
            given[described.stem] = int(told["state"]["messages"])
    return given


async def _taken(client: Client, stream: str, file: Path) -> dict[str, Any]:
    inbox = client.new_inbox()
    pieces = await client.subscribe(inbox)
    asked = {"deliver_subject": inbox, "chunk_size": CHUNK, "jsck": True}
    told = await _asked(client, f"STREAM.SNAPSHOT.{stream}", asked)
    with file.open("wb") as out:
        while (piece := await pieces.next_msg(timeout=SECONDS)).data:
            out.write(piece.data)
            if piece.reply:
                await client.publish(piece.reply, b"")
    status = (piece.headers or {}).get("Status", "204")
    if status not in {"204", "200"}:
        raise Unavailable("NATS JetStream", f"the snapshot of {stream} broke off ({status})")
    return {"config": told["config"], "state": told["state"]}


async def _given(client: Client, stream: str, told: Mapping[str, Any], file: Path) -> None:
    answer = await _asked(client, f"STREAM.RESTORE.{stream}", dict(told))
    place = str(answer["deliver_subject"])
    with file.open("rb") as source:
        for piece in (*_pieces(source), b""):
            said = await client.request(place, piece, timeout=SECONDS)
    done = json.loads(said.data) if said.data else {}
    if "error" in done:
        raise Conflict(f"NATS does not take {stream}: {done['error'].get('description')}")


def _pieces(source: BinaryIO) -> Iterator[bytes]:
    while piece := source.read(CHUNK):
        yield piece


async def _asked(
    client: Client, call: str, body: Mapping[str, Any], missing: bool = False
) -> dict[str, Any]:
    said = await client.request(f"$JS.API.{call}", json.dumps(body).encode(), timeout=SECONDS)
    told: dict[str, Any] = json.loads(said.data)
    if "error" in told and not (missing and told["error"].get("code") == 404):
        raise Unavailable("NATS JetStream", told["error"].get("description", "it refused"))
    return told


@asynccontextmanager
async def _connected(url: str, credentials: Credentials) -> AsyncIterator[Client]:
    client = Client()
    try:
        await client.connect(
            servers(url),
            name="reverie-backup",
            allow_reconnect=False,
            connect_timeout=5,
            **credentials.options(url),
        )
        yield client
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise Unavailable("NATS", "is it running with JetStream enabled?") from error
    finally:
        await client.close()
