"""The mirror under edits of both sides at any step, and killed at any step: no text is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.agent.clone_paths import replace_atomically
from reverie.agent.mirror import folder as folder_module
from reverie.agent.mirror.folder import STATE_FILE, MirrorFolder
from reverie.agent.mirror.record import parse_record, record_of_memory
from reverie.agent.mirror.sync import MirrorSync
from reverie.domain.core.errors import PreconditionFailed


class Killed(BaseException):
    """The process ends here."""


class MemoriesInMemory:
    """Memories with versions, as the gateway keeps them; `tick` runs before each call."""

    def __init__(self) -> None:
        self.active: dict[str, dict[str, Any]] = {}
        self.texts: set[str] = set()
        self.tick: Callable[[], None] = lambda: None
        self._count = 0

    def list_active(self) -> list[dict[str, Any]]:
        self.tick()
        return [dict(memory) for memory in self.active.values()]

    def get(self, id: str) -> dict[str, Any] | None:
        self.tick()
        return dict(self.active[id]) if id in self.active else None

    def remember(self, body: Mapping[str, Any]) -> tuple[str, int]:
        self.tick()
        for id, memory in self.active.items():
            if (memory["scope"], memory["content"]) == (body["scope"], body["content"]):
                return id, int(memory["version"])
        return self.put(str(body["content"]), str(body["scope"])), 1

    def edit(self, id: str, body: Mapping[str, Any], version: int) -> int:
        self.tick()
        self._check(id, version)
        self.change(id, str(body.get("content", self.active[id]["content"])))
        return version + 1

    def archive(self, id: str, version: int) -> None:
        self.tick()
        self._check(id, version)
        del self.active[id]

    def put(self, content: str, scope: str = "project/shop") -> str:
        self._count += 1
        id = f"{self._count:08x}"
        self.active[id] = {
            "id": id,
            "short_id": id,
            "content": content,
            "kind": "decision",
            "scope": scope,
            "key": None,
            "tags": [],
            "pinned": False,
            "version": 1,
        }
        self.texts.add(content)
        return id

    def change(self, id: str, content: str) -> None:
        memory = self.active[id]
        memory |= {"content": content, "version": memory["version"] + 1}
        self.texts.add(content)

    def _check(self, id: str, version: int) -> None:
        if id not in self.active or self.active[id]["version"] != version:
            raise PreconditionFailed(self.active.get(id, {}).get("version", 0))


class World:
    """A folder, the memories that it mirrors, and a person who edits both."""

    def __init__(self, root: Path) -> None:
        self.root, self.memories = root, MemoriesInMemory()
        self.written: set[str] = set()
        """Texts that the person wrote into files, and has not replaced or removed since."""
        self._count = 0
        self._plan: dict[int, Callable[[], None]] = {}
        self._step = 0
        self._is_person = False
        self.steps = 0

    def files(self) -> list[Path]:
        return sorted(self.root.rglob("*.md")) if self.root.exists() else []

    def new_text(self) -> str:
        self._count += 1
        return f"Text {self._count} of somebody"

    def act(self, name: str, choice: int) -> None:
        """Does one thing as the person, or as another agent."""
        self._is_person = True
        try:
            getattr(self, f"_{name}")(choice)
        finally:
            self._is_person = False

    def _remember(self, _: int) -> None:
        self.memories.put(self.new_text())

    def _change(self, choice: int) -> None:
        if ids := sorted(self.memories.active):
            self.memories.change(ids[choice % len(ids)], self.new_text())

    def _archive(self, choice: int) -> None:
        if ids := sorted(self.memories.active):
            del self.memories.active[ids[choice % len(ids)]]

    def _edit(self, choice: int) -> None:
        """Saves a file as editors do: whole, by renaming."""
        files = [path for path in self.files() if not path.name.startswith(".")]
        if files:
            path = files[choice % len(files)]
            old = path.read_text()
            front, _, _ = old.partition("\n---\n")
            self.written.discard(_content(old))
            text = self.new_text()
            self.written.add(text)
            temporary = path.with_name(".person")
            temporary.write_text(f"{front}\n---\n\n{text}\n")
            os.replace(temporary, path)

    def _remove(self, choice: int) -> None:
        files = [path for path in self.files() if not path.name.startswith(".")]
        if files:
            path = files[choice % len(files)]
            self.written.discard(_content(path.read_text()))
            path.unlink()

    def _add(self, _: int) -> None:
        text = self.new_text()
        self.written.add(text)
        path = self.root / "project/shop" / f"note-{self._count}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nkind: decision\n---\n\n{text}\n")

    def sync(self, plan: Mapping[int, Callable[[], None]]) -> None:
        """One pass, in which the plan says what happens before which of its steps."""
        self._plan, self._step = dict(plan), 0
        self.memories.tick = self._tick
        with self._watched(), suppress(Killed):
            MirrorSync(self.memories, MirrorFolder(self.root), removals=True).run()
        self.steps = self._step

    def _tick(self) -> None:
        if self._is_person:
            return
        self._step += 1
        if self._step in self._plan:
            self._plan.pop(self._step)()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        def stepped(call: Callable[..., Any]) -> Callable[..., Any]:
            def run(*arguments: Any, **more: Any) -> Any:
                self._tick()
                return call(*arguments, **more)

            return run

        names = ("rename", "link", "unlink", "walk", "chmod")
        calls = {name: stepped(getattr(os, name)) for name in names}
        read, store = stepped(folder_module._read), stepped(replace_atomically)
        with (
            patch.object(folder_module, "os", SimpleNamespace(**calls)),
            patch.object(folder_module, "_read", read),
            patch.object(folder_module, "replace_atomically", store),
        ):
            yield

    def check_nothing_is_lost(self) -> None:
        in_files = {
            _content(path.read_text())
            for path in self.root.rglob("*")
            if path.is_file() and (".md" in path.name or path.name.startswith(".reverie-new-"))
        }
        missing = self.written - in_files - self.memories.texts
        assert not missing, (missing, in_files)

    def check_in_step(self) -> None:
        """After quiet passes only conflicts are left, and each has its copy."""
        self.sync({})
        self.sync({})
        run = MirrorSync(self.memories, MirrorFolder(self.root), removals=True)
        steps = run.run()
        assert {step.action for step in steps} <= {"conflict"}, steps
        conflicts = {step.path for step in steps}
        for path in self.files():
            name = path.relative_to(self.root).as_posix()
            record = parse_record(path.read_text())
            if record and record.id in self.memories.active and ".conflict" not in name:
                memory = record_of_memory(self.memories.active[record.id])
                assert name in conflicts or record.content == memory.content
        mirrored = {
            record.id for path in self.files() if (record := parse_record(path.read_text()))
        }
        assert set(self.memories.active) <= mirrored
        hidden = [path.name for path in self.root.rglob(".*") if "reverie-" in path.name]
        assert sorted(hidden) == [STATE_FILE, ".reverie-mirror.lock"]


def _content(text: str) -> str:
    record = parse_record(text)
    return record.content if record else text


def _kill() -> None:
    raise Killed


ACTIONS = ("remember", "change", "archive", "edit", "remove", "add")
actions = st.tuples(st.sampled_from(ACTIONS), st.integers(0, 5))
interruptions = st.dictionaries(st.integers(1, 40), st.none() | actions, max_size=4)


@settings(max_examples=2 * settings.get_profile("suite").max_examples)
@given(
    st.lists(actions, min_size=1, max_size=6),
    st.lists(st.tuples(interruptions, st.lists(actions, max_size=4)), min_size=1, max_size=5),
)
def test_no_text_is_lost_whoever_edits_when_and_wherever_the_process_is_killed(
    first: list[tuple[str, int]],
    rounds: list[tuple[dict[int, tuple[str, int] | None], list[tuple[str, int]]]],
) -> None:
    with TemporaryDirectory() as name:
        world = World(Path(name) / "mirror")
        for action in first:
            world.act(*action)
        for planned, actions_between in rounds:
            world.sync(
                {
                    step: _kill if action is None else partial(world.act, *action)
                    for step, action in planned.items()
                }
            )
            world.check_nothing_is_lost()
            for action in actions_between:
                world.act(*action)
        world.check_in_step()
        world.check_nothing_is_lost()


MOST_STEPS = 60


def _prepare(world: World, change: str) -> None:
    """A file in step with its memory, of which one side then changes."""
    world.memories.put(world.new_text())
    world.sync({})
    world.act(change, 0)


@pytest.mark.parametrize("change", ["change", "archive", "edit", "remove"])
@pytest.mark.parametrize("interruption", ["edit", "change", "archive", "kill"])
def test_an_edit_or_a_kill_at_each_single_step_loses_nothing(
    change: str, interruption: str, tmp_path: Path
) -> None:
    for step in range(1, MOST_STEPS):
        world = World(tmp_path / str(step))
        _prepare(world, change)
        act = _kill if interruption == "kill" else partial(world.act, interruption, 0)
        world.sync({step: act})
        world.check_nothing_is_lost()
        # An editor may save again before the next pass puts back what was taken away.
        world.act("edit", 0)
        world.check_in_step()
        world.check_nothing_is_lost()
        if world.steps < step:
            return
    pytest.fail("a pass over one file takes fewer steps")


@pytest.mark.parametrize("change", ["edit", "add"])
def test_an_edit_in_memory_at_each_single_step_reaches_the_file(
    change: str, tmp_path: Path
) -> None:
    for step in range(1, MOST_STEPS):
        world = World(tmp_path / str(step))
        _prepare(world, change)

        def change_all(world: World = world) -> None:
            for index in range(len(world.memories.active)):
                world.act("change", index)

        world.sync({step: change_all})
        world.check_in_step()
        world.check_nothing_is_lost()
        if world.steps < step:
            return
    pytest.fail("a pass over one file takes fewer steps")
