"""Prints how well redaction finds credentials, what it disturbs, and how long a mebibyte takes.

Run from the root of the project: `python -m tests.bench.redaction [file ...]`. Files named are
redacted too, and what would be taken out of them is counted by kind.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from tests.unit.test_redaction_cases import measured, negatives, positives

from reverie.domain.redaction import redact

MEBIBYTE = 1 << 20
HOSTILE = (
    "a",
    "sk-",
    "eyJaaaaaaaaaa.",
    "-----BEGIN PRIVATE KEY-----",
    "://a:",
    "password: ",
    "pwd=hunter ",
    'token("',
    "key=",
    "\\",
    "--a-",
    "curl -u a:",
)


def report_labelled() -> None:
    """Precision and recall on the labelled set, and every mistake."""
    missed, wrong, precision, recall = measured()
    print(f"{len(positives())} with a credential, {len(negatives())} without")
    print(f"precision {precision:.3f}  recall {recall:.3f}")
    for text in missed:
        print(f"  missed     {text[:100]!r}")
    for text in wrong:
        print(f"  disturbed  {text[:100]!r}")


def report_time() -> None:
    """Milliseconds for a mebibyte of ordinary text, and of texts made to be slow."""
    ordinary = "".join(text + "\n" for text in negatives())
    for name, text in [("ordinary", ordinary), *((part, part) for part in HOSTILE)]:
        full = (text * (MEBIBYTE // len(text) + 1))[:MEBIBYTE]
        started = time.perf_counter()
        redact(full)
        print(f"  {name!r:32} {(time.perf_counter() - started) * 1000:7.0f} ms/MiB")


def report_files(paths: list[str]) -> None:
    """Redactions by kind in the files named."""
    kinds: Counter[str] = Counter()
    for path in paths:
        found = redact(Path(path).read_text("utf-8", "replace"))
        kinds.update(dict.fromkeys(found.kinds, 1) | {"all": found.count})
    print(f"{len(paths)} files: {dict(kinds)}")


if __name__ == "__main__":
    report_labelled()
    report_time()
    if len(sys.argv) > 1:
        report_files(sys.argv[1:])
