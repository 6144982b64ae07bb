"""Reads from the pip and uv configuration which package indexes, proxies and model hubs to use.

The order is uv's environment variables, pip's, uv.toml, pip.conf. All indexes found are tried; the
public one only where none is set as the default.
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
class PackageSources:
    """Indexes and link folders to look for a wheel, the model hub, and how to reach them."""

    indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    hub: str | None = None
    cert: str | None = None
    proxy: str | None = None


@dataclass(frozen=True)
class _IndexConfig:
    default: str | None = None
    extra: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    cert: str | None = None
    proxy: str | None = None
    no_index: bool = False


def load_package_sources(
    env: Mapping[str, str] | None = None,
    pip_files: Sequence[Path] | None = None,
    uv_files: Sequence[Path] | None = None,
) -> PackageSources:
    """The sources this machine is set to. Unreadable configuration files are passed over."""
    env = os.environ if env is None else env
    pip_files = _list_pip_files(env) if pip_files is None else pip_files
    uv_files = _list_uv_files(env) if uv_files is None else uv_files
    configs = [_read_uv_env(env), _read_pip_env(env)]
    configs += [_read_uv_file(path) for path in uv_files]
    configs.append(_read_pip_conf(pip_files))
    return _merge(configs, env.get("HF_ENDPOINT") or PUBLIC_HUB)


def _merge(configs: Sequence[_IndexConfig], hub: str) -> PackageSources:
    defaults = [config.default for config in configs if config.default]
    if any(config.no_index for config in configs):
        indexes: list[str] = []
    else:
        indexes = [
            *(defaults or [PUBLIC_INDEX]),
            *(url for config in configs for url in config.extra),
        ]
    return PackageSources(
        indexes=tuple(dict.fromkeys(url.rstrip("/") for url in indexes)),
        find_links=tuple(dict.fromkeys(link for config in configs for link in config.links)),
        hub=hub.rstrip("/"),
        cert=next((config.cert for config in configs if config.cert), None),
        proxy=next((config.proxy for config in configs if config.proxy), None),
    )


def _read_uv_env(env: Mapping[str, str]) -> _IndexConfig:
    default = env.get("UV_DEFAULT_INDEX") or env.get("UV_INDEX_URL")
    named_indexes = tuple(map(_strip_index_name, _split_words(env, "UV_INDEX")))
    return _IndexConfig(
        default=_strip_index_name(default) if default else None,
        extra=named_indexes + _split_words(env, "UV_EXTRA_INDEX_URL"),
        links=tuple(env.get("UV_FIND_LINKS", "").replace(",", " ").split()),
        no_index=_is_true(env.get("UV_NO_INDEX")),
    )


def _read_pip_env(env: Mapping[str, str]) -> _IndexConfig:
    return _IndexConfig(
        default=env.get("PIP_INDEX_URL"),
        extra=_split_words(env, "PIP_EXTRA_INDEX_URL"),
        links=_split_words(env, "PIP_FIND_LINKS"),
        cert=env.get("PIP_CERT"),
        proxy=env.get("PIP_PROXY"),
        no_index=_is_true(env.get("PIP_NO_INDEX")),
    )


def _read_uv_file(path: Path) -> _IndexConfig:
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return _IndexConfig()
    tables = [data, data.get("pip", {})]
    named_indexes = data.get("index", [])
    defaults = [index["url"] for index in named_indexes if index.get("default")]
    defaults += [table["index-url"] for table in tables if "index-url" in table]
    return _IndexConfig(
        default=next(iter(defaults), None),
        extra=tuple(
            [index["url"] for index in named_indexes if not index.get("default")]
            + _collect_entries(tables, "extra-index-url")
        ),
        links=tuple(_collect_entries(tables, "find-links")),
        no_index=any(table.get("no-index") for table in tables),
    )


def _collect_entries(tables: Iterable[dict[str, Any]], key: str) -> list[str]:
    return [str(entry) for table in tables for entry in table.get(key, [])]


def _read_pip_conf(paths: Sequence[Path]) -> _IndexConfig:
    parser = configparser.RawConfigParser()
    try:
        parser.read(paths, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return _IndexConfig()
    values = {
        key.replace("_", "-"): value
        for section in ("global", "install", "download")
        if parser.has_section(section)
        for key, value in parser.items(section)
    }
    return _IndexConfig(
        default=values.get("index-url"),
        extra=_split_words(values, "extra-index-url"),
        links=_split_words(values, "find-links"),
        cert=values.get("cert"),
        proxy=values.get("proxy"),
        no_index=_is_true(values.get("no-index")),
    )


def _list_pip_files(env: Mapping[str, str]) -> list[Path]:
    explicit = env.get("PIP_CONFIG_FILE")
    if explicit == os.devnull:
        return []
    home = Path(env.get("HOME") or Path.home())
    user = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    mac_path = Path("Library/Application Support/pip/pip.conf")
    shared = [Path("/etc/xdg/pip/pip.conf"), Path("/") / mac_path, Path("/etc/pip.conf")]
    per_user = [home / ".pip/pip.conf", home / mac_path, user / "pip/pip.conf"]
    site = [Path(sys.prefix) / "pip.conf"]
    return shared + per_user + site + ([Path(explicit)] if explicit else [])


def _list_uv_files(env: Mapping[str, str]) -> list[Path]:
    if env.get("UV_CONFIG_FILE"):
        return [Path(env["UV_CONFIG_FILE"])]
    if _is_true(env.get("UV_NO_CONFIG")):
        return []
    home = Path(env.get("HOME") or Path.home())
    user = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    return [user / "uv/uv.toml", Path("/etc/uv/uv.toml")]


def _split_words(values: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(values.get(key, "").split())


def _strip_index_name(entry: str) -> str:
    """uv writes an index as `name=url` or as the URL alone."""
    return re.sub(r"^[\w.-]+=", "", entry)


def _is_true(value: str | None) -> bool:
    return (value or "").strip().lower() in _TRUE
