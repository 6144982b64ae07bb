"""`GET /v1/models` and `reverie models status`: what is used, and how far it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from reverie.inference.catalogue import SPARSE_MODEL
from reverie.store.models import Moving
from reverie.testing.models import model_home
from reverie.testing.servers import Database
from tests.stack import eventually, running_stack

KEY = "sk-" + "not-to-be-told-0123456789"


async def test_the_models_are_told_with_their_state_and_without_secrets(
    database: Database, nats_url: str, tmp_path: Path
) -> None:
    language = {
        "llm_provider": "openai",
        "llm_model": "large",
        "llm_url": f"https://user:{KEY}@llm.example/v1",
        "llm_key": SecretStr(KEY),
        "rephrase_seconds": 0.2,
        "rerank_url": f"https://rerank.example/?key={KEY}",
        "rerank_model": "order",
    }
    async with running_stack(database, nats_url, model_home(), **language) as stack:
        await stack.post("/v1/remember", {"content": "Lamps are lit at dusk"})
        moving = Moving(database.admin_url)
        await moving.make_vectors("wide", 8)
        await moving.begin(1, "wide", 8, [])

        async def told() -> dict[str, Any] | None:
            found = await stack.get("/v1/models")
            by_name = {one["name"]: one for one in found["models"]}
            return by_name if by_name["wide"]["chunks"] else None

        models = await eventually(told)
        assert models is not None
        active = models["bge-small-en-v1.5"]
        assert (active["role"], active["state"], active["active"]) == ("embedding", "ready", True)
        assert (active["dims"], active["max_tokens"], active["place"]) == (384, 512, "local")
        wide = models["wide"]
        assert (wide["active"], wide["state"], wide["dims"]) == (False, "missing", 8)
        assert (wide["filled"], wide["chunks"]) == (0, 1)
        assert models.get(SPARSE_MODEL, {}).get("role", "sparse") == "sparse"
        assert models["large"]["used_for"] == ["dream", "recall"]
        assert (models["order"]["role"], models["order"]["place"]) == ("reranker", "endpoint")
        assert KEY not in json.dumps(models)
        stranger = stack.key_of(tenant="strangers")
        theirs = await stack.get("/v1/models", key=stranger)
        assert "wide" not in json.dumps(theirs)
