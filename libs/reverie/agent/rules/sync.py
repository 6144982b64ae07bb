"""Synchronises rule files with memories in both directions and reports conflicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from reverie.agent.clone_paths import replace_atomically, resolve_inside
from reverie.agent.rules.block import (
    RuleBlock,
    RuleItem,
    hash_text,
    normalize_text,
    parse_block,
    replace_block,
    split_block,
)
from reverie.agent.rules.files import (
    AGENT_FILE_TAG,
    RuleFileScan,
    RuleSection,
    read_rule_file,
    scan_rule_files,
)
from reverie.domain.core.errors import InvalidInput, ReverieError
from reverie.domain.redaction.redactor import redact


class GatewayCall(Protocol):
    """A call to the gateway, with `version` if one is given; returns the decoded body."""

    async def __call__(
        self,
        method: str,
        path: str,
        query: dict[str, Any],
        body: dict[str, Any] | None,
        version: int | None = None,
    ) -> Any: ...


ConflictPreference = Literal["file", "memory"]

EXPORTED_KINDS: Final = ("convention", "preference", "identity")
SOURCE_FIELD: Final = "agent_file"
BATCH_SIZE: Final = 100


@dataclass(frozen=True)
class SyncStep:
    """One change that was made or planned. A `conflict` is left to the user."""

    action: Literal[
        "remembered", "edited", "forgotten", "written", "left out", "conflict", "rejected"
    ]
    file: str
    subject: str
    reason: str = ""


@dataclass
class RuleSync:
    """One run over the files of a project.

    `prefer` resolves conflicts; without it they are left unchanged. A `dry_run` changes nothing.
    """

    request: GatewayCall
    root: Path
    project: str
    dry_run: bool = False
    prefer: ConflictPreference | None = None
    steps: list[SyncStep] = field(default_factory=list)

    async def import_sections(self) -> None:
        """Imports the sections of all rule files as memories, and forgets removed sections."""
        scan = scan_rule_files(self.root)
        self.steps += [SyncStep("rejected", "", item) for item in scan.unreadable]
        existing = {
            item["key"]: item
            for item in await self._list_memories({"tag": AGENT_FILE_TAG})
            if item["key"]
        }
        new = [item for item in scan.sections if self._needs_update(item, existing.get(item.key))]
        for start in range(0, len(new), BATCH_SIZE):
            await self._remember_sections(new[start : start + BATCH_SIZE])
        await self._forget_missing(scan, existing)

    def _needs_update(self, section: RuleSection, memory: dict[str, Any] | None) -> bool:
        if memory is None:
            return True
        metadata = memory["metadata"]
        if metadata.get("hash") == section.content_hash:
            return False
        if (
            metadata.get("written_hash") in (None, hash_text(memory["content"]))
            or self.prefer == "file"
        ):
            return True
        if self.prefer != "memory":
            reason = f"the memory {memory['short_id']} was edited since it was taken in"
            self.steps.append(SyncStep("conflict", section.file, section.heading, reason))
        return False

    async def _remember_sections(self, sections: list[RuleSection]) -> None:
        responses: list[dict[str, Any]] = [{}] * len(sections)
        if not self.dry_run:
            bodies = [_memory_body(section, self.project) for section in sections]
            answer = await self.request("POST", "/v1/remember/batch", {}, {"items": bodies})
            responses = answer["items"]
        for section, response in zip(sections, responses, strict=True):
            if "detail" in response:
                self.steps.append(
                    SyncStep("rejected", section.file, section.heading, str(response["detail"]))
                )
            elif response.get("status") != "duplicate":
                self.steps.append(SyncStep("remembered", section.file, section.heading))

    async def _forget_missing(
        self, scan: RuleFileScan, existing: dict[str, dict[str, Any]]
    ) -> None:
        """Forgets missing sections of files that were read or no longer exist."""
        keys = {section.key for section in scan.sections}
        for key, memory in existing.items():
            file = str(memory["metadata"].get(SOURCE_FIELD, ""))
            is_missing = file in scan.files or (file and not (self.root / file).exists())
            if key in keys or not is_missing:
                continue
            if not self.dry_run:
                await self.request(
                    "DELETE", f"/v1/memories/{memory['id']}", {}, None, memory["version"]
                )
            heading = str(memory["metadata"].get("heading", ""))
            self.steps.append(SyncStep("forgotten", file, heading, "it was removed from the file"))

    async def export_block(self, name: str) -> None:
        """Reconciles the block of a file with the memories of the project, and writes it."""
        path = resolve_inside(self.root, Path(name))
        text = read_rule_file(path) if path.exists() else ""
        _, raw, _ = split_block(name, text)
        block = parse_block(raw) if raw is not None else RuleBlock()
        memories = await self._exported_memories()
        items = [
            settled
            for item in block.items
            if (settled := await self._reconcile_item(name, item, memories))
        ]
        present_ids = {settled.id for settled in items}
        for id, memory in memories.items():
            if id not in present_ids and id not in block.known_ids:
                items.append(RuleItem(normalize_text(memory["content"]), id))
                self.steps.append(SyncStep("written", name, _abbreviate(memory["content"])))
        removed = frozenset(id for id in block.removed_ids if id in memories)
        self.steps += [
            SyncStep("left out", name, _abbreviate(memories[id]["content"]))
            for id in sorted(removed - block.reported_ids)
        ]
        if not self.dry_run:
            replace_file(path, text, replace_block(name, text, items, removed))

    async def _reconcile_item(
        self, name: str, item: RuleItem, memories: dict[str, dict[str, Any]]
    ) -> RuleItem | None:
        """Returns the item to write to the file; None to remove it."""
        if item.id is None:
            return await self._add_item(name, item)
        memory = memories.get(item.id)
        is_current = memory is not None and hash_text(memory["content"]) == item.written_hash
        if not item.is_edited:
            if memory is None or is_current:
                return item if memory else None
            self.steps.append(SyncStep("written", name, _abbreviate(memory["content"])))
            return RuleItem(normalize_text(memory["content"]), item.id)
        if memory is not None and hash_text(memory["content"]) == hash_text(item.text):
            return RuleItem(item.text, item.id)
        if is_current or (memory and self.prefer == "file"):
            return await self._edit_item(name, item, memory["version"] if memory else None)
        if self.prefer == "memory":
            return RuleItem(normalize_text(memory["content"]), item.id) if memory else None
        reason = "edited here, and in memory too" if memory else "edited here, and gone from memory"
        self.steps.append(SyncStep("conflict", name, _abbreviate(item.text), reason))
        return item

    async def _add_item(self, name: str, item: RuleItem) -> RuleItem:
        self.steps.append(SyncStep("remembered", name, _abbreviate(item.text)))
        if self.dry_run:
            return item
        body = {
            "content": item.text,
            "kind": "convention",
            "scope": f"project/{self.project}",
            "metadata": {"written_in": name},
        }
        response = await self.request("POST", "/v1/remember", {}, body)
        return await self._reload_item(response["id"])

    async def _edit_item(self, name: str, item: RuleItem, version: int | None) -> RuleItem:
        self.steps.append(SyncStep("edited", name, _abbreviate(item.text)))
        if self.dry_run or item.id is None:
            return item
        body = {"content": item.text, "reason": f"edited in {name}"}
        await self.request("PATCH", f"/v1/memories/{item.id}", {}, body, version)
        return await self._reload_item(item.id)

    async def _reload_item(self, id: str) -> RuleItem:
        """The item as the gateway stores it: without secrets."""
        memory = await self.request("GET", f"/v1/memories/{id}", {}, None)
        return RuleItem(normalize_text(memory["content"]), str(memory["id"]))

    async def _exported_memories(self) -> dict[str, dict[str, Any]]:
        """Lists the memories for a block, oldest first, without those that rule files contain
        themselves."""
        memories = await self._list_memories({"kind": list(EXPORTED_KINDS)})
        exported = [memory for memory in memories if AGENT_FILE_TAG not in memory["tags"]]
        return {
            str(memory["id"]): memory
            for memory in sorted(exported, key=lambda memory: str(memory["id"]))
        }

    async def _list_memories(self, filters: dict[str, Any]) -> list[dict[str, Any]]:
        """All active memories of the project."""
        project_scope = f"project/{self.project}"
        query = {**filters, "status": ["active"], "limit": 200}
        if "tag" not in filters:
            query["scope"] = project_scope
        memories: list[dict[str, Any]] = []
        while True:
            page = await self.request("GET", "/v1/memories", query, None)
            memories += [
                memory
                for memory in page["items"]
                if f"{memory['scope']}/".startswith(f"{project_scope}/")
            ]
            if not page["next"]:
                return memories
            query["cursor"] = page["next"]


def find_blocks(root: Path) -> list[str]:
    """The rule files that have a block."""
    names = []
    for name in scan_rule_files(root).files:
        try:
            if split_block(name, read_rule_file(root / name))[1] is not None:
                names.append(name)
        except ReverieError:
            continue
    return names


def replace_file(path: Path, before: str, after: str) -> None:
    """Replaces the file atomically and keeps its mode.

    Raises `InvalidInput` if the file changed since it was read.
    """
    if after == before:
        return
    if path.exists() and read_rule_file(path) != before:
        raise InvalidInput("file", f"{path} was just changed by another: run it again")
    replace_atomically(path, after.encode())


def _memory_body(section: RuleSection, project: str) -> dict[str, Any]:
    scope = f"project/{project}" + (f"/topic/{'/'.join(section.topic)}" if section.topic else "")
    return {
        "content": section.content,
        "kind": section.kind,
        "scope": scope,
        "key": section.key,
        "soft": True,
        "tags": list(section.tags),
        "confidence": 0.9,
        "metadata": {
            SOURCE_FIELD: section.file,
            "heading": section.heading,
            "hash": section.content_hash,
            "written_hash": hash_text(section.content),
        },
    }


def _abbreviate(text: str) -> str:
    line = redact(normalize_text(text).partition("\n")[0]).text
    return line if len(line) <= 80 else f"{line[:79]}…"
