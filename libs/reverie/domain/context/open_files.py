"""Memories that are relevant to the files an agent has open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reverie.domain.core.kinds import Kind
from reverie.domain.core.memory import Memory
from reverie.domain.entities.file_paths import is_same_file

MAX_OPEN_FILES = 50

_LANGUAGES: dict[str, str] = {
    "c h": r"\bC (?:code|files?)\b",
    "cc cpp cxx hpp hxx": r"\bC\+\+",
    "cs": r"\bC#",
    "css scss sass less": r"(?i:\b(?:css|scss|sass|stylesheets?)\b)",
    "dart": r"(?i:\bdart\b)",
    "ex exs": r"(?i:\belixir\b)",
    "go": r"(?i:\bgolang\b|\bgofmt\b)|\bGo (?:code|files?|packages?|modules?|errors?)\b|\bIn Go\b",
    "html htm": r"(?i:\bhtml\b)",
    "java": r"\bJava\b",
    "js jsx mjs cjs": r"(?i:\bjavascript\b)|\bJS\b",
    "kt kts": r"(?i:\bkotlin\b)",
    "md mdx": r"(?i:\bmarkdown\b)",
    "php": r"(?i:\bphp\b)",
    "proto": r"(?i:\bprotobuf\b|\bproto files?\b)",
    "py pyi": r"(?i:\bpython\b|\bpep ?8\b)",
    "rb": r"(?i:\bruby\b)",
    "rs": r"\bRust\b|(?i:\bclippy\b|\brustfmt\b)",
    "scala": r"(?i:\bscala\b)",
    "sh bash zsh": r"(?i:\bshell scripts?\b|\bbash\b)",
    "sql": r"\bSQL\b|(?i:\bmigrations?\b)",
    "svelte": r"(?i:\bsvelte\b)",
    "swift": r"\bSwift\b",
    "tf": r"(?i:\bterraform\b)",
    "ts tsx mts cts": r"(?i:\btypescript\b)|\bTS\b",
    "vue": r"\bVue\b",
    "yaml yml": r"(?i:\byaml\b)",
}
_FOLDER = re.compile(r"(?<![\w/.@-])(?:[\w.@-]++/)+")
_LANGUAGE_PATTERNS = {
    ext: re.compile(said) for exts, said in _LANGUAGES.items() for ext in exts.split()
}


@dataclass(frozen=True)
class FileRelatedMemory:
    """A memory that the open files call for, and why: as `touches src/a.ts`."""

    memory: Memory
    why: str


def normalize_paths(files: Iterable[str]) -> list[str]:
    """Paths with `/` and without `./`, each once, at most `MAX_OPEN_FILES`."""
    normalized = ("/".join(_split_path(file)) for file in files)
    return list(dict.fromkeys(path for path in normalized if path))[:MAX_OPEN_FILES]


def list_file_names(files: Sequence[str]) -> list[str]:
    """The last components of paths."""
    return sorted({_split_path(file)[-1] for file in files})


def list_folder_suffixes(files: Sequence[str]) -> list[str]:
    """The folders of paths, and their ends: an agent may name files from the root of the disk."""
    suffixes: dict[str, None] = {}
    for file in files:
        parts = _split_path(file)[:-1]
        suffixes.update(dict.fromkeys("/".join(parts[n:]) for n in range(len(parts))))
    return list(suffixes)


def explain_relevance(path: str, files: Sequence[str]) -> str | None:
    """Explains why a memory that touches `path` is needed; None if it is not."""
    if any(is_same_file(path, file) for file in files):
        return f"touches {path}"
    sibling = next((file for file in files if _is_same_folder(path, file)), None)
    return f"touches {path}, beside {_split_path(sibling)[-1]}" if sibling else None


def find_file_conventions(
    memories: Iterable[Memory], files: Sequence[str]
) -> Iterator[FileRelatedMemory]:
    """Finds conventions that name the language or a parent folder of an open file."""
    for memory in memories:
        if memory.kind is Kind.CONVENTION:
            text = f"{memory.content} {' '.join(memory.tags)}"
            subject = next((name for file in files if (name := _find_mention(text, file))), None)
            if subject:
                yield FileRelatedMemory(memory, f"for {subject}")


def _find_mention(text: str, file: str) -> str | None:
    """Returns the kind or the parent folder of a file that a text names."""
    name = _split_path(file)[-1]
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    pattern = _LANGUAGE_PATTERNS.get(extension)
    if pattern and pattern.search(text):
        return f".{extension} files"
    if extension and re.search(rf"(?<![\w/])\*?\.{re.escape(extension)}\b", text):
        return f".{extension} files"
    return next((folder for folder in _FOLDER.findall(text) if f"/{folder}" in f"/{file}"), None)


def _is_same_folder(path: str, file: str) -> bool:
    """Returns whether two files are in one folder, judged by their names; the root never counts."""
    first, second = _split_path(path)[:-1], _split_path(file)[:-1]
    short, long = sorted((first, second), key=len)
    return bool(first) and (first == second or (short is first and long[-len(first) :] == first))


def _split_path(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part not in {"", "."}]
