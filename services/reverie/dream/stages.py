"""How long each stage of a dream takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from reverie.domain.dreaming import Record


@contextmanager
def stage(record: Record, name: str) -> Iterator[None]:
    """Adds the seconds inside to a stage of the record."""
    begun = perf_counter()
    try:
        yield
    finally:
        record.spent(name, perf_counter() - begun)
