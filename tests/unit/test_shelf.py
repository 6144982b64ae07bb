"""What is kept in memory of tenants stays within its room, and the last ones stay."""

from __future__ import annotations

import pytest

from reverie.store import shelf
from reverie.store.shelf import Name, Shelf

MB = 1_000_000


class Sized:
    """So many bytes."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


class Sizes(Shelf[Sized]):
    """Reads what it is told of each tenant."""

    def __init__(self, megabytes: int, sizes: dict[Name, int]) -> None:
        super().__init__(megabytes)
        self.sizes = sizes

    async def _read(self, name: Name) -> Sized | None:
        return Sized(self.sizes[name])

    async def asked(self, name: Name) -> bool:
        """Asks for it, and reads what is wanted; whether it is there then."""
        self._of(name)
        await self.read_wanted()
        return name in self._kept


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("PAUSE_SECONDS", "BLIND_SECONDS", "SHARE"):
        monkeypatch.setattr(shelf, pause, 0.0)


async def test_what_is_larger_than_all_the_room_drives_nobody_out() -> None:
    small, large = (1, "table"), (2, "table")
    kept = Sizes(2, {small: MB, large: 3 * MB})
    assert await kept.asked(small)
    assert not await kept.asked(large)
    assert small in kept._kept
    # Nor does what has grown so stay as it was.
    kept.sizes[small] = 3 * MB
    kept._want(small)
    await kept.read_wanted()
    assert small not in kept._kept


async def test_those_that_asked_last_stay() -> None:
    names = [(number, "table") for number in range(3)]
    kept = Sizes(2, dict.fromkeys(names, MB))
    for name in names[:2]:
        assert await kept.asked(name)
    kept._of(names[0])
    assert await kept.asked(names[2])
    assert list(kept._kept) == [names[0], names[2]]


async def test_what_drives_out_others_is_read_a_small_part_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shelf, "SHARE", 50)
    names = [(number, "table") for number in range(3)]
    kept = Sizes(2, dict.fromkeys(names, MB))
    pauses = []
    for name in names:
        kept._want(name)
        pauses.append(await kept._read_next())
    assert pauses[:2] == [0.0, 0.0]
    assert pauses[2] > 0
