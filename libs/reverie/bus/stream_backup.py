"""Backs up and restores whole streams with the JetStream snapshot API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats.errors
from nats.aio.client import Client

from reverie.bus.credentials import NO_CREDENTIALS, NatsCredentials
from reverie.bus.streams import STREAMS, connection_hint, parse_server_urls
from reverie.domain.core.errors import Conflict, Unavailable

CHUNK_BYTES = 64 * 1024
CHUNK_TIMEOUT = 15.0
"""Seconds that the server may take for one chunk."""


async def backup_streams(
    url: str, folder: Path, credentials: NatsCredentials = NO_CREDENTIALS
) -> dict[str, int]:
    """Writes each stream of ours, with its consumers, to `folder`; messages by stream.

    Raises `Unavailable`.
    """
    message_counts = {}
    async with _open_client(url, credentials) as client:
        for spec in STREAMS:
            description = await _backup_stream(client, spec.name, folder / f"{spec.name}.snapshot")
            (folder / f"{spec.name}.json").write_text(json.dumps(description, indent=2) + "\n")
            message_counts[spec.name] = int(description["state"]["messages"])
    return message_counts


async def restore_streams(
    url: str, folder: Path, credentials: NatsCredentials = NO_CREDENTIALS
) -> dict[str, int]:
    """Replaces each stream of the server by the one in `folder`; returns messages by stream.

    Raises `Unavailable`, and `Conflict` if the server rejects a stream.
    """
    message_counts = {}
    async with _open_client(url, credentials) as client:
        for spec in STREAMS:
            description = json.loads((folder / f"{spec.name}.json").read_text())
            await _request_api(client, f"STREAM.DELETE.{spec.name}", {}, missing_ok=True)
            await _restore_stream(client, spec.name, description, folder / f"{spec.name}.snapshot")
            message_counts[spec.name] = int(description["state"]["messages"])
    return message_counts


async def _backup_stream(client: Client, stream: str, file: Path) -> dict[str, Any]:
    inbox = client.new_inbox()
    chunks = await client.subscribe(inbox)
    body = {"deliver_subject": inbox, "chunk_size": CHUNK_BYTES, "jsck": True}
    snapshot = await _request_api(client, f"STREAM.SNAPSHOT.{stream}", body)
    with file.open("wb") as target:
        while (chunk := await chunks.next_msg(timeout=CHUNK_TIMEOUT)).data:
            target.write(chunk.data)
            if chunk.reply:
                await client.publish(chunk.reply, b"")
    status = (chunk.headers or {}).get("Status", "204")
    if status not in {"204", "200"}:
        raise Unavailable("NATS JetStream", f"the snapshot of {stream} broke off ({status})")
    return {"config": snapshot["config"], "state": snapshot["state"]}


async def _restore_stream(
    client: Client, stream: str, description: Mapping[str, Any], file: Path
) -> None:
    answer = await _request_api(client, f"STREAM.RESTORE.{stream}", dict(description))
    deliver_subject = str(answer["deliver_subject"])
    with file.open("rb") as source:
        for chunk in (*iter(lambda: source.read(CHUNK_BYTES), b""), b""):
            response = await client.request(deliver_subject, chunk, timeout=CHUNK_TIMEOUT)
    result = json.loads(response.data) if response.data else {}
    if "error" in result:
        raise Conflict(f"NATS does not take {stream}: {result['error'].get('description')}")


async def _request_api(
    client: Client, api_path: str, body: Mapping[str, Any], missing_ok: bool = False
) -> dict[str, Any]:
    response = await client.request(
        f"$JS.API.{api_path}", json.dumps(body).encode(), timeout=CHUNK_TIMEOUT
    )
    result: dict[str, Any] = json.loads(response.data)
    if "error" in result and not (missing_ok and result["error"].get("code") == 404):
        raise Unavailable("NATS JetStream", result["error"].get("description", "it refused"))
    return result


@asynccontextmanager
async def _open_client(url: str, credentials: NatsCredentials) -> AsyncIterator[Client]:
    client = Client()
    failures: list[Exception] = []

    async def remember(failure: Exception) -> None:
        failures.append(failure)

    try:
        await client.connect(
            parse_server_urls(url),
            name="reverie-backup",
            # Without it, the driver prints tracebacks.
            error_cb=remember,
            max_reconnect_attempts=1,
            allow_reconnect=False,
            connect_timeout=5,
            **credentials.connect_options(url),
        )
        yield client
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise Unavailable("NATS", connection_hint([*failures, error])) from error
    finally:
        await client.close()
