"""Anthropic's memory tool, against its own on a file system."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.client import AsyncReverie
from tests.adapters.examples import run_example
from tests.support.stack import Stack

if TYPE_CHECKING:
    from reverie.adapters.anthropic_memory import ReverieMemoryTool

PATHS = st.sampled_from(
    [
        *("/memories", "/memories/", "/memories/a.md", "/memories/b .txt", "/memories/.hidden"),
        *("/memories/notes", "/memories/notes/a.md", "/memories/notes/deep/er/c%2F.md"),
        *("/memories/../secret", "/memories/notes/../a.md", "/memoriesx", "/etc/passwd", ""),
    ]
)
TEXTS = st.sampled_from(["", "one", "one\ntwo\n", "two\r\none\none", " \n", "😀\n\nthree\n"])
PIECES = st.sampled_from(["one", "two", "", "\n", "none"])
COMMANDS = st.one_of(
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": PATHS},
        optional={"view_range": st.lists(st.integers(-1, 4), min_size=2, max_size=2)},
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": PATHS, "old_str": PIECES, "new_str": PIECES}
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("insert"),
            "path": PATHS,
            "insert_line": st.integers(-1, 4),
            "insert_text": TEXTS,
        }
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)

# The threads of the stack use `random` while Hypothesis draws.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")


def make_tool(client: AsyncReverie, **options: Any) -> ReverieMemoryTool:
    """A tool. Imported here: the library takes seconds of every process that collects tests."""
    from reverie.adapters.anthropic_memory import ReverieMemoryTool

    return ReverieMemoryTool(client, **options)


def _describe_refusal(error: Exception) -> str:
    """A refusal. What the file system refuses names a folder, which differs."""
    return f"{type(error).__name__}: {error.errno if isinstance(error, OSError) else error}"


async def _answer(tool: ReverieMemoryTool, command: dict[str, Any]) -> str:
    try:
        return str(await tool.call(command))
    except Exception as error:
        return _describe_refusal(error)


def _reference_answer(tool: Any, command: dict[str, Any]) -> str:
    try:
        return str(tool.call(command))
    except Exception as error:
        return _describe_refusal(error)


@settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(COMMANDS, min_size=8, max_size=16))
async def test_answers_and_refusals_are_those_of_the_tool_on_a_file_system(
    stack: Stack, commands: list[dict[str, Any]]
) -> None:
    from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

    with TemporaryDirectory() as folder:
        reference = BetaLocalFilesystemMemoryTool(folder)
        async with AsyncReverie(stack.url, stack.key) as client:
            await make_tool(client).clear_all_memory()
            for command in [*commands, {"command": "view", "path": "/memories"}]:
                # A tool of its own each time: what is known is known from the documents.
                answer = await _answer(make_tool(client), command)
                assert answer == _reference_answer(reference, command), command


async def test_a_file_is_remembered_under_its_name_until_it_is_deleted(stack: Stack) -> None:
    async with AsyncReverie(stack.url, stack.key) as client:
        tool = make_tool(client, scope="project/tower")

        async def remembered() -> list[str]:
            found = client.list_memories(scope="project/tower", status=["active"])
            return sorted([one.content async for one in found])

        made = {"command": "create", "path": "/memories/lamp.md"}
        await tool.call({**made, "file_text": "The lamp is lit at dusk.\n"})
        await tool.call({**made, "path": "/memories/oil.md", "file_text": "Oil is below.\n"})
        changed = {"command": "str_replace", "path": "/memories/lamp.md"}
        await tool.call({**changed, "old_str": "dusk", "new_str": "six"})
        assert await remembered() == [
            "/memories/lamp.md\n\nThe lamp is lit at six.",
            "/memories/oil.md\n\nOil is below.",
        ]
        found = await client.recall("When is the lamp lit?", scopes=["project/tower"])
        assert "lit at six" in found.memories[0].content
        moved = {"command": "rename", "old_path": "/memories/lamp.md"}
        await tool.call({**moved, "new_path": "/memories/tower/lamp.md"})
        await tool.call({"command": "delete", "path": "/memories/oil.md"})
        assert await remembered() == ["/memories/tower/lamp.md\n\nThe lamp is lit at six."]
        # A name that was used before can be used again.
        await tool.call({**made, "path": "/memories/oil.md", "file_text": "Oil is below.\n"})
        assert len(await remembered()) == 2
        await tool.call({"command": "delete", "path": "/memories/tower"})
        await tool.call(
            {**changed, "path": "/memories/oil.md", "old_str": "Oil is below.", "new_str": ""}
        )
        assert await remembered() == []


class _Reading(AsyncReverie):
    """Notes the keys of the documents that it reads."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.read: list[str] = []

    async def list_documents(self, *args: Any, **fields: Any) -> AsyncIterator[Any]:
        async for document in super().list_documents(*args, **fields):
            self.read.append(document.key)
            yield document


async def test_a_command_on_one_file_reads_no_others(stack: Stack) -> None:
    async with _Reading(stack.url, stack.key) as client:
        tool = make_tool(client)
        for name in ("ropes.md", "sails/main.md"):
            path = f"/memories/{name}"
            await tool.call({"command": "create", "path": path, "file_text": "All is well."})
        assert client.read == []
        await tool.call({"command": "view", "path": "/memories/sails/main.md"})
        assert client.read == ["/memories/sails/", "/memories/sails/main.md"]


async def test_a_name_may_be_longer_than_a_key(stack: Stack) -> None:
    path = f"/memories/{'n' * 120}/{'m' * 120}.md"
    async with AsyncReverie(stack.url, stack.key) as client:
        tool = make_tool(client)
        await tool.call({"command": "create", "path": path, "file_text": "Far away."})
        (kept,) = [one async for one in client.list_memories(status=["active"])]
        assert "Far away." in kept.content
        await tool.call({"command": "delete", "path": path})
        assert [one async for one in client.list_memories(status=["active"])] == []


async def test_without_a_scope_only_the_memory_of_the_keys_own_is_forgotten(stack: Stack) -> None:
    path = "/memories/notes.md"
    async with AsyncReverie(stack.url, stack.key) as client:
        tool = make_tool(client)
        for each in (make_tool(client, scope="project/inn"), tool):
            await each.call({"command": "create", "path": path, "file_text": "Beds are made."})
        emptied = {"old_str": "Beds are made.", "new_str": ""}
        await tool.call({"command": "str_replace", "path": path, **emptied})
        await tool.call({"command": "delete", "path": path})
        kept = [one.scope async for one in client.list_memories(status=["active"])]
    assert kept == ["project/inn"]


async def test_a_document_that_is_no_file_below_the_directory_is_left_alone(
    stack: Stack, tmp_path: Path
) -> None:
    up = "../" * 20
    values: dict[str, Any] = {
        f"/{up}{tmp_path}/one.txt": "Out.",
        f"/memories/{up}{tmp_path}/two.txt": "Out.",
        f"{up}{tmp_path}/three/": None,
        "/memories/../memoriesx/four.md": "Beside.",
        "/memories": "The directory itself.",
        "/memories/number.md": 5,
        "/memories/good.md": "Good.",
    }
    documents = [{"key": quote(path), "value": value} for path, value in values.items()]
    async with AsyncReverie(stack.url, stack.key) as client:
        await client.put_documents("anthropic-memory", documents)
        tool = make_tool(client)
        listing = str(await tool.call({"command": "view", "path": "/memories"}))
        kept = [one.key async for one in client.list_documents("anthropic-memory")]
    assert "good.md" in listing
    assert "number.md" not in listing
    assert os.listdir(tmp_path) == []
    assert kept == [document["key"] for document in documents]


async def test_the_example_reads_what_an_earlier_conversation_wrote(stack: Stack) -> None:
    assert await run_example(stack, "adapters/anthropic_memory_tool") == [
        "I wrote it down.",
        "In cents.",
    ]
