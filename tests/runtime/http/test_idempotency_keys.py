"""A POST under an idempotency key takes effect once."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.runtime.sample_service import (
    ADMIN_KEY,
    GOOD,
    KEY,
    OTHER_KEY,
    Sample,
    problem_of,
)


async def test_ten_concurrent_idempotent_posts_take_effect_once(
    http: aiohttp.ClientSession, sample: Sample
) -> None:
    async def post() -> tuple[int, bool]:
        headers = {"Idempotency-Key": "k"}
        async with http.post("/v1/held", json=GOOD, headers=headers) as response:
            if response.status == 409:
                assert int(response.headers["Retry-After"]) >= 1
                assert (await problem_of(response))["code"] == "conflict"
                sample.go.set()
            elif response.status == 200:
                bodies.add(await response.read())
            return response.status, "Idempotent-Replayed" in response.headers

    bodies: set[bytes] = set()
    outcomes = await asyncio.gather(*(post() for _ in range(10)))
    assert sample.notes == ["hello"]
    assert outcomes.count((200, False)) == 1
    assert {status for status, _ in outcomes} == {200, 409}
    assert await post() == (200, True)
    assert len(bodies) == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/notes", {"text": "other"}), ("/v1/optional", None), ("/v1/later", GOOD)],
)
async def test_the_same_key_with_another_request_is_refused(
    http: aiohttp.ClientSession, path: str, body: dict[str, Any] | None
) -> None:
    headers = {"Idempotency-Key": "k"}
    async with http.post("/v1/notes", json=GOOD, headers=headers) as response:
        assert response.status == 201
    async with http.post(path, json=body, headers=headers) as response:
        document = await problem_of(response)
    assert (document["status"], document["code"]) == (422, "idempotency_mismatch")


async def test_the_same_key_of_another_holder_is_another_request(
    http: aiohttp.ClientSession,
) -> None:
    tenants = []
    for key in (KEY, OTHER_KEY, ADMIN_KEY):
        headers = {"Idempotency-Key": "k", "Authorization": f"Bearer {key}"}
        async with http.post("/v1/notes", json=GOOD, headers=headers) as response:
            assert "Idempotent-Replayed" not in response.headers
            tenants.append((await response.json())["tenant"])
    assert tenants == ["tenant-1", "tenant-2", "tenant-1"]


async def test_a_failed_request_frees_its_key(http: aiohttp.ClientSession, sample: Sample) -> None:
    headers = {"Idempotency-Key": "k"}
    async with http.post("/v1/held", json=GOOD, headers=headers) as response:
        assert (await problem_of(response))["status"] == 503
    sample.go.set()
    async with http.post("/v1/held", json=GOOD, headers=headers) as response:
        assert response.status == 200
    async with http.post("/v1/notes", json={}, headers={"Idempotency-Key": "n"}) as response:
        assert response.status == 422
    async with http.post("/v1/notes", json=GOOD, headers={"Idempotency-Key": "n"}) as response:
        assert response.status == 201
