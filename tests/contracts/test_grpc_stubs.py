"""The gRPC stubs match reverie.proto; run as a module, it writes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

LIBS = Path(__file__).parents[2] / "libs"
PROTO = "reverie/contracts/reverie.proto"
NAMES = ("reverie_pb2.py", "reverie_pb2.pyi", "reverie_pb2_grpc.py")


def test_the_stubs_match_the_proto() -> None:
    with TemporaryDirectory() as folder:
        made = generate(Path(folder))
        for name, text in made.items():
            written = (LIBS / PROTO).with_name(name).read_text()
            assert written == text, "run `python -m tests.contracts.test_grpc_stubs`"


def generate(folder: Path) -> dict[str, str]:
    """The stubs by name."""
    outs = [f"--{kind}_out={folder}" for kind in ("python", "pyi", "grpc_python")]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{LIBS}", *outs, PROTO]
    subprocess.run(command, check=True)
    return {name: (folder / PROTO).with_name(name).read_text() for name in NAMES}


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        for stub, text in generate(Path(place)).items():
            (LIBS / PROTO).with_name(stub).write_text(text)
