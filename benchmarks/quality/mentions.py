"""Prints how well files and entities are recognised in labelled texts.

Run from the root of the project: `python -m benchmarks.quality.mentions`.
"""

from __future__ import annotations

import time

from benchmarks.support.common import parser
from reverie.domain.entities.recognition import extract_entities
from tests.domain.entities.labelled_texts import score, texts

HOSTILE = ("a", "a.", "a-", "a_", "Aa", "a/", "a::", "1.", "pip install a ", "`a", "@a/", "端口")


def report_time() -> None:
    """Milliseconds for a mebibyte of texts made to be slow."""
    for part in HOSTILE:
        text = (part * ((1 << 20) // len(part.encode()) + 1))[: 1 << 20]
        started = time.perf_counter()
        extract_entities(text)
        print(f"  {part!r:18} {(time.perf_counter() - started) * 1000:7.0f} ms/MiB")


def main() -> None:
    """Precision and recall over all and by sort, and every mistake."""
    for part in ("dev", "held"):
        labelled = texts(part)
        made = score(labelled)
        negatives = sum(not labels for _, labels in labelled)
        print(f"{part}: {len(labelled)} texts, {negatives} without any")
        for sort in sorted({*made.right, *made.wrong, *made.missed}):
            print(
                f"  {sort:8} precision {made.precision(sort):.3f}  recall {made.recall(sort):.3f}"
            )
        for line in made.mistakes:
            print(f"    {line}")
    report_time()


if __name__ == "__main__":
    parser(__doc__).parse_args()
    main()
