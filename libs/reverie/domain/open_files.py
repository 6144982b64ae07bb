"""What an agent will likely need, told by the files it has open. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reverie.domain.anchors import same_file
from reverie.domain.kinds import Kind
from reverie.domain.memory import Memory

MOST_FILES = 50

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
_FOLDER = re.compile(r"(?<![\w/.-])(?:[\w.@-]+/)+")
_NAMED = {ext: re.compile(said) for exts, said in _LANGUAGES.items() for ext in exts.split()}


@dataclass(frozen=True)
class Near:
    """A memory that the open files call for, and why: as `touches src/a.ts`."""

    memory: Memory
    why: str


def clean(files: Iterable[str]) -> list[str]:
    """Paths with `/` and without `./`, each once, at most `MOST_FILES`."""
    found = ("/".join(_parts(file)) for file in files)
    return list(dict.fromkeys(path for path in found if path))[:MOST_FILES]


def names(files: Sequence[str]) -> list[str]:
    """The last components of paths."""
    return sorted({_parts(file)[-1] for file in files})


def folders(files: Sequence[str]) -> list[str]:
    """The folders of paths, and their ends: an agent may name files from the root of the disk."""
    found: dict[str, None] = {}
    for file in files:
        parts = _parts(file)[:-1]
        found.update(dict.fromkeys("/".join(parts[n:]) for n in range(len(parts))))
    return list(found)


def why_near(path: str, files: Sequence[str]) -> str | None:
    """Why a memory that touches `path` is needed; None where it is not."""
    if any(same_file(path, file) for file in files):
        return f"touches {path}"
    beside = next((file for file in files if _same_folder(path, file)), None)
    return f"touches {path}, beside {_parts(beside)[-1]}" if beside else None


def conventions_for(memories: Iterable[Memory], files: Sequence[str]) -> Iterator[Near]:
    """Conventions that speak of the language of an open file or of a folder that it lies in."""
    for memory in memories:
        if memory.kind is Kind.CONVENTION:
            said = f"{memory.content} {' '.join(memory.tags)}"
            spoken_of = next((name for file in files if (name := _spoken_of(said, file))), None)
            if spoken_of:
                yield Near(memory, f"for {spoken_of}")


def _spoken_of(said: str, file: str) -> str | None:
    """What of a file a text names: its kind of file, or a folder above it."""
    name = _parts(file)[-1]
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    named = _NAMED.get(extension)
    if named and named.search(said):
        return f".{extension} files"
    if extension and re.search(rf"(?<![\w/])\*?\.{re.escape(extension)}\b", said):
        return f".{extension} files"
    return next((folder for folder in _FOLDER.findall(said) if f"/{folder}" in f"/{file}"), None)


def _same_folder(path: str, file: str) -> bool:
    """Whether two files lie in one folder, as far as both names tell; the root is none."""
    one, two = _parts(path)[:-1], _parts(file)[:-1]
    short, long = sorted((one, two), key=len)
    return bool(one) and (one == two or (short is one and long[-len(one) :] == one))


def _parts(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part not in {"", "."}]
