"""Which errors of Postgres pass by themselves, so that a caller is told to try again."""

from __future__ import annotations

import asyncpg
import pytest

from reverie.store.pools import OUTAGES


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.DiskFullError,
        asyncpg.OutOfMemoryError,
        asyncpg.TooManyConnectionsError,
        asyncpg.CannotConnectNowError,
        asyncpg.InternalClientError,
        asyncpg.DeadlockDetectedError,
        asyncpg.SerializationError,
        ConnectionResetError,
    ],
)
def test_a_server_without_room_or_on_its_way_back_or_a_race_that_was_lost_passes(
    error: type[BaseException],
) -> None:
    assert issubclass(error, OUTAGES)


@pytest.mark.parametrize("error", [asyncpg.UniqueViolationError, asyncpg.SyntaxOrAccessError])
def test_a_statement_that_is_wrong_does_not_get_right_by_waiting(error: type[Exception]) -> None:
    assert not issubclass(error, OUTAGES)
