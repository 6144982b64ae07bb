"""Rule files and memories, held against each other: what goes in, what goes out, what conflicts.

A file is the master of its own sections, a person of everything: what was edited in the block
becomes an edit of the memory. Where both sides changed, neither is touched and it is told.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from reverie.agent.rule_block import Block, Item, hash_of, normal, put, read, split
from reverie.agent.rule_files import TAG, Found, Section, find, inside, read_text
from reverie.domain.errors import Invalid, ReverieError
from reverie.domain.redaction import redact


class Ask(Protocol):
    """A call to the gateway, under `version` where one is given; answers the decoded body."""

    async def __call__(
        self,
        method: str,
        path: str,
        query: dict[str, Any],
        body: dict[str, Any] | None,
        version: int | None = None,
    ) -> Any: ...


Prefer = Literal["file", "memory"]

EXPORTED: Final = ("convention", "preference", "identity")
SOURCE: Final = "agent_file"
BATCH: Final = 100


@dataclass(frozen=True)
class Step:
    """One thing that was done, or would be. A `conflict` waits for a person."""

    what: Literal["remembered", "edited", "forgotten", "written", "left out", "conflict", "refused"]
    file: str
    about: str
    why: str = ""


@dataclass
class Sync:
    """One run over the files of a project.

    `prefer` decides what conflicts; without it they are left as they are. Nothing is changed on
    a `dry` run.
    """

    ask: Ask
    root: Path
    project: str
    dry: bool = False
    prefer: Prefer | None = None
    steps: list[Step] = field(default_factory=list)

    async def take_in(self) -> None:
        """The sections of all rule files become memories; those of gone sections are forgotten."""
        found = find(self.root)
        self.steps += [Step("refused", "", one) for one in found.refused]
        standing = {one["key"]: one for one in await self._memories({"tag": TAG}) if one["key"]}
        new = [one for one in found.sections if self._is_new(one, standing.get(one.key))]
        for start in range(0, len(new), BATCH):
            some = new[start : start + BATCH]
            await self._remember([_body(one, self.project) for one in some], some)
        await self._forget_gone(found, standing)

    def _is_new(self, section: Section, memory: dict[str, Any] | None) -> bool:
        if memory is None:
            return True
        facts = memory["metadata"]
        if facts.get("hash") == section.hash:
            return False
        if facts.get("kept") in {None, hash_of(memory["content"])} or self.prefer == "file":
            return True
        if self.prefer != "memory":
            why = f"the memory {memory['short_id']} was edited since it was taken in"
            self.steps.append(Step("conflict", section.file, section.heading, why))
        return False

    async def _remember(self, bodies: list[dict[str, Any]], sections: list[Section]) -> None:
        answers = [{}] * len(bodies) if self.dry else await self._sent(bodies)
        for section, answer in zip(sections, answers, strict=True):
            if "detail" in answer:
                self.steps.append(
                    Step("refused", section.file, section.heading, str(answer["detail"]))
                )
            elif answer.get("status") != "duplicate":
                self.steps.append(Step("remembered", section.file, section.heading))

    async def _sent(self, bodies: list[dict[str, Any]]) -> list[Any]:
        answer = await self.ask("POST", "/v1/remember/batch", {}, {"items": bodies})
        return list(answer["items"])

    async def _forget_gone(self, found: Found, standing: dict[str, dict[str, Any]]) -> None:
        """Only of files that were read, or are there no longer."""
        keys = {one.key for one in found.sections}
        for key, memory in standing.items():
            file = str(memory["metadata"].get(SOURCE, ""))
            gone = file in found.files or (file and not (self.root / file).exists())
            if key in keys or not gone:
                continue
            if not self.dry:
                await self.ask(
                    "DELETE", f"/v1/memories/{memory['id']}", {}, None, memory["version"]
                )
            heading = str(memory["metadata"].get("heading", ""))
            self.steps.append(Step("forgotten", file, heading, "it is in the file no more"))

    async def give_out(self, name: str) -> None:
        """Settles the block of a file with the memories of the project, and writes it."""
        path = inside(self.root, Path(name))
        text = read_text(path) if path.exists() else ""
        _, raw, _ = split(name, text)
        block = read(raw) if raw is not None else Block()
        memories = await self._exported()
        items = [one for item in block.items if (one := await self._settle(name, item, memories))]
        have = {one.id for one in items}
        for id, memory in memories.items():
            if id not in have and id not in block.known:
                items.append(Item(normal(memory["content"]), id))
                self.steps.append(Step("written", name, _short(memory["content"])))
        removed = frozenset(id for id in block.removed if id in memories)
        self.steps += [
            Step("left out", name, _short(memories[id]["content"]))
            for id in sorted(removed - block.told)
        ]
        if not self.dry:
            replace_text(path, text, put(name, text, items, removed))

    async def _settle(
        self, name: str, item: Item, memories: dict[str, dict[str, Any]]
    ) -> Item | None:
        """The item as it is to stand in the file; None where it goes."""
        if item.id is None:
            return await self._added(name, item)
        memory = memories.get(item.id)
        stands = memory is not None and hash_of(memory["content"]) == item.base
        if not item.edited:
            if memory is None or stands:
                return item if memory else None
            self.steps.append(Step("written", name, _short(memory["content"])))
            return Item(normal(memory["content"]), item.id)
        if memory is not None and hash_of(memory["content"]) == hash_of(item.text):
            return Item(item.text, item.id)
        if stands or (memory and self.prefer == "file"):
            return await self._edited(name, item, memory["version"] if memory else None)
        if self.prefer == "memory":
            return Item(normal(memory["content"]), item.id) if memory else None
        why = "edited here, and in memory too" if memory else "edited here, and gone from memory"
        self.steps.append(Step("conflict", name, _short(item.text), why))
        return item

    async def _added(self, name: str, item: Item) -> Item:
        self.steps.append(Step("remembered", name, _short(item.text)))
        if self.dry:
            return item
        body = {
            "content": item.text,
            "kind": "convention",
            "scope": f"project/{self.project}",
            "metadata": {"written_in": name},
        }
        made = await self.ask("POST", "/v1/remember", {}, body)
        return await self._as_kept(made["id"])

    async def _edited(self, name: str, item: Item, version: int | None) -> Item:
        self.steps.append(Step("edited", name, _short(item.text)))
        if self.dry or item.id is None:
            return item
        body = {"content": item.text, "reason": f"edited in {name}"}
        await self.ask("PATCH", f"/v1/memories/{item.id}", {}, body, version)
        return await self._as_kept(item.id)

    async def _as_kept(self, id: str) -> Item:
        """The item as the gateway keeps it: without secrets."""
        memory = await self.ask("GET", f"/v1/memories/{id}", {}, None)
        return Item(normal(memory["content"]), str(memory["id"]))

    async def _exported(self) -> dict[str, dict[str, Any]]:
        """What a block holds, the oldest first: not what files say themselves."""
        found = await self._memories({"kind": list(EXPORTED)})
        own = [one for one in found if TAG not in one["tags"]]
        return {str(one["id"]): one for one in sorted(own, key=lambda one: str(one["id"]))}

    async def _memories(self, filters: dict[str, Any]) -> list[dict[str, Any]]:
        """All active ones of the project."""
        top = f"project/{self.project}"
        query = {**filters, "status": ["active"], "limit": 200}
        if "tag" not in filters:
            query["scope"] = top
        found: list[dict[str, Any]] = []
        while True:
            page = await self.ask("GET", "/v1/memories", query, None)
            found += [one for one in page["items"] if f"{one['scope']}/".startswith(f"{top}/")]
            if not page["next"]:
                return found
            query["cursor"] = page["next"]


def blocks_in(root: Path) -> list[str]:
    """The rule files that have a block."""
    found = []
    for name in find(root).files:
        try:
            if split(name, read_text(root / name))[1] is not None:
                found.append(name)
        except ReverieError:
            continue
    return found


def replace_text(path: Path, before: str, after: str) -> None:
    """Writes a file whole or not at all, with its mode. Raises `Invalid` where somebody else wrote
    it meanwhile."""
    if after == before:
        return
    if path.exists() and read_text(path) != before:
        raise Invalid("file", f"{path} was just changed by another: run it again")
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".reverie-", delete=False) as file:
        file.write(after.encode())
    os.chmod(file.name, mode)
    os.replace(file.name, path)


def _body(section: Section, project: str) -> dict[str, Any]:
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
            SOURCE: section.file,
            "heading": section.heading,
            "hash": section.hash,
            "kept": hash_of(section.content),
        },
    }


def _short(text: str) -> str:
    line = redact(normal(text).partition("\n")[0]).text
    return line if len(line) <= 80 else f"{line[:79]}…"
