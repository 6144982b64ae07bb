"""Reads a tenant's whole final state through the gateway."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

import aiohttp

from chaos.history import Action, ClientCall, FinalMemory, Outcome, State, markers_in

Lines = dict[str, list[dict[str, Any]]]


async def read_state(
    http: aiohttp.ClientSession, gateway: str, key: str, calls: list[ClientCall]
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
    for call in calls:
        if call.action == Action.CHANGE and call.outcome == Outcome.DONE:
            changes[call.marker] = await _is_known(http, gateway, auth, call)
    return State(
        _memories(lines),
        _links(lines),
        Counter(m for turn in lines["turn"] for m in markers_in(turn["content"])),
        frozenset(
            m for turn in lines["turn"] if not turn["run"] for m in markers_in(turn["content"])
        ),
        _marks(lines),
        changes,
        Counter(m for old in lines["memory_version"] for m in markers_in(old["reason"] or "")),
        Counter(session["user_name"] for session in lines["session"]),
        {key: await _vault_entry(http, gateway, auth, key) for key in _vault_keys(calls)},
    )


def _vault_keys(calls: list[ClientCall]) -> list[str]:
    """The keys of the vault that clients wrote to."""
    return sorted({call.key for call in calls if call.action == Action.KEEP})


async def _vault_entry(
    http: aiohttp.ClientSession, gateway: str, auth: dict[str, str], key: str
) -> tuple[int, str]:
    """The version and the value of an entry; 0 where there is none."""
    where = f"{gateway}/v1/vault/{key}?scope=project/chaos"
    async with http.get(where, headers=auth) as answer:
        told = await answer.json()
        return (told["version"], told["value"]) if answer.status == 200 else (0, "")


def _memories(lines: Lines) -> dict[str, FinalMemory]:
    """Those that clients wrote, files and digests too, with all they ever said."""
    said: dict[str, list[str]] = defaultdict(list)
    for record in lines["memory_version"]:
        said[record["memory"]].append(record["content"])
    return {
        record["id"]: FinalMemory(
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


async def _is_known(
    http: aiohttp.ClientSession, gateway: str, auth: dict[str, str], call: ClientCall
) -> int:
    """1 where the change, told again, is a duplicate."""
    body = {
        "project": "chaos", "branch": "main", "after": call.marker,
        "commits": [{"sha": call.marker, "subject": "change",
                     "committed_at": "2026-01-01T00:00:00Z"}],
        "files": [{"path": call.path, "status": "modified"}],
    }  # fmt: skip
    async with http.post(f"{gateway}/v1/git/changes", json=body, headers=auth) as answer:
        told = await answer.json()
        return int(answer.status < 300 and told["duplicate"])
