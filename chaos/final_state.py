"""Reads a tenant's whole final state through the gateway."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

import aiohttp

from chaos.history import Act, Deed, Kept, Outcome, State, markers_in

Lines = dict[str, list[dict[str, Any]]]


async def read_state(
    http: aiohttp.ClientSession, gateway: str, key: str, deeds: list[Deed]
) -> State:
    """What an export tells, and which of the changes are known when they are told again."""
    auth = {"Authorization": f"Bearer {key}"}
    lines: Lines = defaultdict(list)
    async with http.get(f"{gateway}/v1/export", headers=auth) as answer:
        assert answer.status == 200, await answer.text()
        async for line in answer.content:
            record = json.loads(line)
            lines[record["type"]].append(record)
    changes = Counter[str]()
    for deed in deeds:
        if deed.act == Act.CHANGE and deed.outcome == Outcome.DONE:
            changes[deed.marker] = await _known(http, gateway, auth, deed)
    return State(
        _memories(lines),
        _links(lines),
        Counter(m for turn in lines["turn"] for m in markers_in(turn["content"])),
        frozenset(
            m for turn in lines["turn"] if not turn["run"] for m in markers_in(turn["content"])
        ),
        _marks(lines),
        changes,
        Counter(m for old in lines["memory_version"] for m in markers_in(old["why"] or "")),
        Counter(session["user_name"] for session in lines["session"]),
        {key: await _entry(http, gateway, auth, key) for key in _kept_under(deeds)},
    )


def _kept_under(deeds: list[Deed]) -> list[str]:
    """The keys of the vault that clients wrote to."""
    return sorted({deed.key for deed in deeds if deed.act == Act.KEEP})


async def _entry(
    http: aiohttp.ClientSession, gateway: str, auth: dict[str, str], key: str
) -> tuple[int, str]:
    """The version and the value of an entry; 0 where there is none."""
    where = f"{gateway}/v1/vault/{key}?scope=project/chaos"
    async with http.get(where, headers=auth) as answer:
        told = await answer.json()
        return (told["version"], told["value"]) if answer.status == 200 else (0, "")


def _memories(lines: Lines) -> dict[str, Kept]:
    """Those that clients wrote, files and digests too, with all they ever said."""
    said: dict[str, list[str]] = defaultdict(list)
    for record in lines["memory_version"]:
        said[record["memory"]].append(record["content"])
    return {
        record["id"]: Kept(
            "merged" if record.get("merged_into") else record["status"],
            record["content"],
            (*said[record["id"]], record["content"]),
            record.get("key") or "",
        )
        for record in lines["memory"]
    }


def _links(lines: Lines) -> Counter[tuple[str, str]]:
    stand = (e for e in lines["edge"] if e["kind"] == "depends_on" and not e.get("known_to"))
    return Counter((edge["src"], edge["dst"]) for edge in stand)


def _marks(lines: Lines) -> Counter[tuple[str, str, str]]:
    """Those of the files that a memory touches itself: what it leans on may be doubted too."""
    return Counter(
        (record["id"], mark["commit"], mark["path"])
        for record in lines["memory"]
        for mark in record.get("stale", [])
        if mark["origin"] == record["id"]
    )


async def _known(
    http: aiohttp.ClientSession, gateway: str, auth: dict[str, str], deed: Deed
) -> int:
    """1 where the change, told again, is a duplicate."""
    body = {
        "project": "chaos", "branch": "main", "after": deed.marker,
        "commits": [{"sha": deed.marker, "subject": "change",
                     "committed_at": "2026-01-01T00:00:00Z"}],
        "files": [{"path": deed.path, "status": "modified"}],
    }  # fmt: skip
    async with http.post(f"{gateway}/v1/git/changes", json=body, headers=auth) as answer:
        told = await answer.json()
        return int(answer.status < 300 and told["duplicate"])
