"""Extraction of file paths and code identifiers from a text, and the comparison of paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from reverie.domain.text.characters import word_set
from reverie.domain.text.turns import TurnText, tool_call_target

MAX_PATHS = 64
MAX_PATH_BYTES = 1024


_EXTENSIONS = word_set(
    """adoc asm astro avsc awk bash bat bazel bzl c cc cfg cjs clj cljs cmake cmd coffee conf
    cpp cql cs csproj css csv cu cue cxx dart dockerfile ejs el elm env erb erl ex exs fish
    fs fsproj gemspec go gql gradle graphql groovy h haml hbs hcl hh hpp hrl hs htm html hxx
    ini ino ipynb iml j2 java jinja jinja2 jl js json json5 jsonc jsonl jsx kt kts less lhs
    lock lua m make mdx md mdc mjs mk ml mli mm mod mts nim nix odin patch pem php pl plist pm po
    pot prisma properties proto ps1 pug py pyi pyx r rake rb rego res rmd rs rst s sass sbt
    scala scm scss sh sln sol sql sum svelte svg swift tcl tex tf tfvars thrift toml tpl
    ts tsv tsx txt v vb vhd vue wasm wat webmanifest xml xsd yaml yml zig zsh"""
)
_FILE_NAMES = word_set(
    """Makefile Dockerfile Jenkinsfile Vagrantfile Procfile Gemfile Rakefile Justfile Caddyfile
    Brewfile Containerfile CODEOWNERS LICENSE .gitignore .gitattributes .gitmodules .dockerignore
    .editorconfig .npmrc .nvmrc .env .bashrc .zshrc .prettierrc .eslintrc .babelrc
    .python-version .tool-versions .goreleaser"""
)
_LIBRARY_NAMES = word_set(
    """node.js next.js vue.js nuxt.js react.js express.js three.js d3.js ember.js backbone.js
    angular.js chart.js discord.js alpine.js moment.js socket.io asp.net p5.js electron.js
    nest.js solid.js svelte.js bun.js deno.js day.js"""
)
_SOURCE_DIRS = word_set(
    """src lib libs pkg cmd internal app apps packages services tests test spec docs doc scripts
    script api web server client frontend backend components config deploy helm charts
    migrations examples tools .github .gitlab .circleci .vscode .claude .cursor
    .specstory"""
)
_SYSTEM_PATH = re.compile(
    r"/(?:tmp|private|usr|etc|var|opt|proc|dev|bin|sbin|sys|run|root/\.|Library|System"
    r"|Applications)\b|(?:~|/Users/[^/]+|/home/[^/]+)/\."
)
_COMMON_NAMES = re.compile(
    r"(?:index|main|mod|lib|app|init|__init__|__main__|utils?|helpers?|types?|config|settings"
    r"|constants|test|tests|setup|readme|changelog|license|package|makefile|dockerfile|models?"
    r"|views?|routes?|urls|errors?|common|base|core|server|client|api|doc|page|layout|style"
    r"|styles|build|cargo|go|conftest|schema)(?:\.[a-z0-9]+)*",
    re.I,
)
_URL = re.compile(
    r"\b[a-z][a-z0-9+.-]{0,15}://[^\s<>()\"'`]+|\b(?:git@|mailto:)\S+|[\w.+-]{1,64}@[\w-]{1,64}\.\w+",
    re.I,
)
_DIFF_HEADER = re.compile(r"^(?:diff --git|---|\+\+\+) .*$", re.M)
_DIFF_SIDE = re.compile(r"(?<=\s)[ab]/(?=\S)")
_TOKEN = re.compile(r"[A-Za-z0-9_.@+~/\\$*{}<>\[\]:#%=,-]+", re.A)
_PATH_HINT = re.compile(rf"\.\w|{'|'.join(name for name in sorted(_FILE_NAMES) if name[0] != '.')}")
"""Every path has an extension, or is one of a few names."""
_LINE_SUFFIX = re.compile(r"(?::\d[\d:,-]{0,40}+|#L?\d[\dL,-]{0,40}+)$")
_COMPONENT = re.compile(r"[A-Za-z0-9_.@+~\[\]-]+", re.A)
MAX_CACHED_TOKEN = 120
"""Longest token whose verdict is cached."""


def extract_paths(text: str, roots: Sequence[str] = ()) -> list[str]:
    """Extracts the file paths that a text names, normalised, in order, each once.

    Cut off: `./`, a diff's `a/` and `b/`, line numbers, a root among `roots`. An absolute path
    under no root keeps the part that looks like the repository: from a source folder on, else its
    last two components. Files of the system and of a home folder's settings are left out. URLs,
    versions, patterns, `and/or`, names like Node.js and anything of more than 1,024 bytes are no
    paths.
    """
    if not _PATH_HINT.search(text):
        return []
    cleaned = _URL.sub(" ", _DIFF_HEADER.sub(lambda line: _DIFF_SIDE.sub("", line[0]), text))
    root_folders = tuple(roots)
    tokens = (
        token.strip("[]{}:#").rstrip(".,:;")
        for match in _TOKEN.finditer(cleaned)
        for token in re.split(r"[,=<>]+|:(?=[A-Za-z/.~])", match[0])
    )
    candidates = (
        (_parse_path_cached if len(token) < MAX_CACHED_TOKEN else _parse_path)(token, root_folders)
        for token in tokens
    )
    return list(dict.fromkeys(path for path in candidates if path))[:MAX_PATHS]


def extract_tool_files(tool_turn: TurnText, roots: Sequence[str] = ()) -> list[str]:
    """The files in a condensed tool call, not those in its output."""
    target = tool_call_target(tool_turn.content)
    return extract_paths(target or tool_turn.content.partition("\n")[0], roots)


def is_same_file(anchor_path: str, changed_path: str) -> bool:
    """Returns whether a named path is the file that changed.

    True if both are equal, or if one ends with the other at a component boundary. In the second
    case the shorter needs two components, or a distinctive file name. Such a name has five letters
    or more before the dot, and is not common in folders, as index.ts or config.py.
    """
    anchor_parts, changed_parts = _split_components(anchor_path), _split_components(changed_path)
    short, long = sorted((anchor_parts, changed_parts), key=len)
    if not short or long[-len(short) :] != short:
        return False
    if len(short) == len(long) or len(short) >= 2:
        return True
    stem = short[0].partition(".")[0] or short[0]
    return len(stem) >= 5 and not _COMMON_NAMES.fullmatch(short[0])


def build_anchor_metadata(path: str, git: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of an edge to a file: its name in the memory, the lines, symbols and content
    that the memory refers to, and when its session wrote the file."""
    metadata: dict[str, Any] = {"named": path}
    for field, name in (("lines", "lines"), ("blobs", "blob"), ("modified_at", "modified_at")):
        if path in git.get(field, {}):
            metadata[name] = git[field][path]
    if path in git.get("symbols", {}):
        metadata["symbols"] = [
            [symbol["name"], *symbol["lines"]] for symbol in git["symbols"][path]
        ]
    return metadata


def _split_components(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part not in {"", "."}]


def _parse_path(token: str, roots: tuple[str, ...]) -> str | None:
    # Agents write @path to show a file; a diff puts + or - before a line.
    raw = _LINE_SUFFIX.sub("", token).rstrip(".:").lstrip("+-@")
    raw = re.sub(r"^[A-Za-z]:[\\/]", "/", raw).replace("\\", "/")
    if not raw or re.search(r"[*$%{}#:]|\.\.\.", raw):
        return None
    path = _to_repository_path(raw, roots)
    parts = _split_components(path)
    if not parts or not all(_COMPONENT.fullmatch(part) for part in parts):
        return None
    parts = [part for part in parts if part != ".."]
    parts = parts[1:] if len(parts) > 2 and parts[0] in {"a", "b"} else parts
    path = "/".join(parts)
    fits_limit = len(path.encode()) <= MAX_PATH_BYTES
    return path if parts and fits_limit and _is_file_path(parts) else None


_parse_path_cached = lru_cache(maxsize=2048)(_parse_path)
"""Cached, because the same words recur."""


def _is_file_path(parts: list[str]) -> bool:
    name = parts[-1]
    if name in _FILE_NAMES or (name.startswith(".env") and len(name) < 20):
        return True
    stem, dot, extension = name.rpartition(".")
    if not dot or not stem.strip(".") or extension not in _EXTENSIONS:
        # `.golangci.yml` has a stem, `.go` (a suffix people talk about) has none.
        return False
    if len(parts) > 1:
        return True
    return name.lower() not in _LIBRARY_NAMES and (len(extension) > 1 or stem[:1].islower())


def _to_repository_path(raw: str, roots: Iterable[str]) -> str:
    for root in roots:
        prefix = root.replace("\\", "/").rstrip("/") + "/"
        if raw.startswith(prefix):
            return raw[len(prefix) :]
    if not raw.startswith(("/", "~")):
        return raw
    if _SYSTEM_PATH.match(raw):
        return ""
    parts = _split_components(raw)
    # The first components are the disk's, not the repository's.
    for i, part in enumerate(parts[2:], start=2):
        if part in _SOURCE_DIRS:
            return "/".join(parts[i:])
    return "/".join(parts[-2:]) if len(parts) > 2 else "/".join(parts)


MAX_IDENTIFIERS = 200
MIN_IDENTIFIER_LENGTH = 3

_NAME = r"[A-Za-z_$][\w$]*"
_CODE_SPAN = re.compile(r"`([^`\n]{1,200})`")
_IDENTIFIER = re.compile(
    rf"(?<![\w$./-])(?:"
    rf"(?P<call>{_NAME})(?=\()"
    rf"|(?P<member>{_NAME}(?:(?:\.|::|->|\#){_NAME})+)"
    rf"|(?P<humps>[A-Za-z][a-z0-9]*[a-z0-9][A-Z][\w$]*|[A-Z]{{2,}}[a-z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)"
    rf"|(?P<under>[A-Za-z]\w*_\w+|_\w+_\w+)"
    rf")(?![\w$/])"
)
_SINGLE_NAME = re.compile(_NAME)
# Matches start only at the first character of a word: starting anywhere takes quadratic time.
_FILE_PATH = re.compile(r"(?<![\w./-])[\w./-]*\w\.[a-z]{1,5}\b|(?<![\w.-])[\w.-]+/[\w./-]+")


def extract_identifiers(text: str) -> frozenset[str]:
    """The plain names in a text, at most `MAX_IDENTIFIERS`; both names of `Store.load()`."""
    text_without_paths = _FILE_PATH.sub(" ", text)
    names: dict[str, None] = {}
    for code_span in _CODE_SPAN.findall(text_without_paths):
        if len(words := _SINGLE_NAME.findall(code_span)) <= 3:
            names |= dict.fromkeys(words)
    for match in _IDENTIFIER.finditer(text_without_paths):
        names |= dict.fromkeys(_SINGLE_NAME.findall(match[0]))
    return frozenset(
        [name for name in names if len(name) >= MIN_IDENTIFIER_LENGTH][:MAX_IDENTIFIERS]
    )
