"""Fetches the libraries of the console from the npm registry: `make vendor`.

Each package has a pinned version, whose archive must have the pinned hash. The files are used
unchanged, each with its licence.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "services/reverie_services/console/static/vendor"
FOR_TESTS = Path(__file__).parent / "vendor"
REGISTRY = "https://registry.npmjs.org"


@dataclass(frozen=True)
class NpmPackage:
    """A package, the hash of its archive, and the file that is taken from it with its licence."""

    name: str
    version: str
    integrity: str
    file: str
    licence: str
    folder: Path = SHIPPED

    @property
    def targets(self) -> dict[str, Path]:
        """The paths in the archive, and where each file goes."""
        return {
            f"package/{self.file}": self.folder / Path(self.file).name,
            f"package/{self.licence}": self.folder / f"{self.name.partition('.')[0]}.LICENSE.txt",
        }


PACKAGES = (
    NpmPackage(
        "htmx.org",
        "2.0.11",
        "sha512-Thx/WtpeOQqSrqBCw/A1cwGJGg4UrVa3+sW0GmrM3p4gJgO89ecH4qtbnyzDDWFvBTqjnIMCgELTNt636dtamA==",
        "dist/htmx.min.js",
        "LICENSE",
    ),
    NpmPackage(
        "cytoscape",
        "3.35.0",
        "sha512-sMvBIXiGMnhkCaWz2R06FwF/27MNlS+Tqvi17foO9UhnUg3XGZccKjxsvEqQFAQYMSSZmN5SxYzUYlQ0DOJJ3g==",
        "dist/cytoscape.min.js",
        "LICENSE",
    ),
    NpmPackage(
        "uplot",
        "1.6.32",
        "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        "dist/uPlot.iife.min.js",
        "LICENSE",
    ),
    NpmPackage(
        "uplot",
        "1.6.32",
        "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        "dist/uPlot.min.css",
        "LICENSE",
    ),
    NpmPackage(
        "axe-core",
        "4.14.1",
        "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
        "axe.min.js",
        "LICENSE",
        FOR_TESTS,
    ),
)


def fetch(package: NpmPackage) -> None:
    """Writes the files of a package; raises `ValueError` if its archive has another hash."""
    url = f"{REGISTRY}/{package.name}/-/{package.name}-{package.version}.tgz"
    with urllib.request.urlopen(url, timeout=60) as answer:
        archive: bytes = answer.read()
    digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if f"sha512-{digest}" != package.integrity:
        raise ValueError(f"{url} has another hash than the pinned one")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member, target in package.targets.items():
            content = files.extractfile(member)
            assert content is not None
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())


if __name__ == "__main__":
    for each in PACKAGES:
        fetch(each)
