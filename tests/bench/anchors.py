"""Prints how well files and entities are found in labelled texts: `python -m tests.bench.anchors`."""

from __future__ import annotations

from tests.anchor_texts import score, texts


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


if __name__ == "__main__":
    main()
