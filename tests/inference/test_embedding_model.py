"""The real embedding model: token counts, its queue, cancellation."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped, unused-ignore]
import pytest

from reverie.domain.core.errors import Unavailable
from reverie.inference.embedder import OnnxEmbedder, load_embedder
from reverie.inference.model_catalogue import BGE_SMALL, SPARSE_MODEL
from reverie.inference.token_counters import (
    UNKNOWN_TOKENS,
    EstimatingTokenCounter,
    ModelTokenCounter,
    load_tokenizer,
)
from reverie.testing.models import model_home

PROSE = "We decided to sweep the outbox with a relay, because a writer may die in between. " * 20


@pytest.fixture(scope="module")
def counter() -> ModelTokenCounter:
    return ModelTokenCounter(model_home() / "models" / BGE_SMALL.name)


@pytest.fixture
def small() -> Iterator[OnnxEmbedder]:
    folder = model_home() / "models" / BGE_SMALL.name
    embedder = OnnxEmbedder.from_spec(BGE_SMALL, folder, max_waiting=2)
    yield embedder
    embedder.close()


def test_token_counts_are_additive_and_truncation_respects_the_limit(
    counter: ModelTokenCounter,
) -> None:
    assert counter.count("") == 0
    assert counter.count("hello world") == 2
    cut = counter.cut(PROSE, 50)
    assert PROSE.startswith(cut)
    assert 45 <= counter.count(cut) <= 50
    assert counter.cut("short", 50) == "short"


def test_a_word_too_long_for_the_vocabulary_is_more_than_one_token(
    counter: ModelTokenCounter,
) -> None:
    blob = "Zm9vYmFy" * 500
    assert counter.count(blob) > 1000
    assert counter.count(counter.cut(f"before {blob} after", 100)) <= 100


def test_the_model_knows_the_words_of_its_own_language_best(counter: ModelTokenCounter) -> None:
    assert counter.vocabulary_share(PROSE) == 1
    assert counter.vocabulary_share("") == 1
    assert counter.vocabulary_share("怎么避免客户隐私写进日志") < 0.5
    mixed = counter.vocabulary_share("the pool of connections 怎么避免客户隐私")
    assert counter.vocabulary_share("怎么避免客户隐私") < mixed < 1
    assert EstimatingTokenCounter().vocabulary_share("怎么避免客户隐私写进日志") == 1


def test_word_by_word_token_counts_equal_those_of_the_whole_text() -> None:
    signs = [
        *"abZ01 \t\n\r\x0b\x1c.,-_/()é中文字日본\u0301\u00a0\u2028\u3000\ufeffﬁ",
        "[MASK]",
        "[UNK]",
    ]
    signs += ["getUserById ", "x" * 60, "y" * 130]
    chance = random.Random(7)
    texts = ["".join(chance.choices(signs, k=chance.randrange(30))) for _ in range(200)]
    for name in (BGE_SMALL.name, SPARSE_MODEL):
        folder = model_home() / "models" / name
        counter, tokenizer = ModelTokenCounter(folder), load_tokenizer(folder)
        unknown = {tokenizer.token_to_id(mark) for mark in UNKNOWN_TOKENS}
        for text in [*texts, PROSE]:
            read = tokenizer.encode(text, add_special_tokens=False)
            lengths = [stop - start for start, stop in read.offsets]
            whole = sum(1 if length <= 100 else -(-length // 3) for length in lengths)
            lacks = sum(one in unknown for one in read.ids)
            assert counter.count(text) == whole, (name, text)
            assert counter.vocabulary_share(text) == (1 - lacks / len(lengths) if lengths else 1), (
                name,
                text,
            )


def test_the_token_estimate_is_not_below_the_count_on_prose(counter: ModelTokenCounter) -> None:
    assert EstimatingTokenCounter().count(PROSE) >= counter.count(PROSE)


async def test_calls_beyond_the_queue_are_refused_and_the_rest_answered(
    small: OnnxEmbedder,
) -> None:
    calls = [small.embed([f"text {n} {'word ' * 200}"]) for n in range(5)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, Unavailable)]
    assert len(refused) == 3
    assert (await small.embed(["free again"])).shape == (1, small.dims)


async def test_a_query_does_not_wait_for_a_whole_long_call(small: OnnxEmbedder) -> None:
    order: list[str] = []

    async def run(name: str, texts: list[str]) -> None:
        await small.embed(texts)
        order.append(name)

    await asyncio.gather(run("long", ["many words here " * 100] * 7), run("query", ["a query"]))
    assert order == ["query", "long"]


async def test_a_cancelled_call_frees_its_place(small: OnnxEmbedder) -> None:
    for _ in range(3):
        task = asyncio.create_task(small.embed(["many words here " * 100] * 2))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await small.embed(["still here"])).shape == (1, small.dims)


def test_a_missing_model_is_not_downloaded_without_permission(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"no model_quantized\.onnx there"):
        load_embedder(home=tmp_path, download=False)


async def test_an_idle_model_is_unloaded_and_the_next_call_loads_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    open_session = onnxruntime.InferenceSession

    def count_session(path: str, *arguments: Any, **options: Any) -> Any:
        opened.append(path)
        return open_session(path, *arguments, **options)

    monkeypatch.setattr(onnxruntime, "InferenceSession", count_session)
    embedder = load_embedder(folder=model_home() / "models")
    embedder.release_when_idle(0.0)
    before = await embedder.embed(["Herons nest behind the mill."])
    await asyncio.sleep(0.1)
    after = await embedder.embed(["Herons nest behind the mill."])
    embedder.close()
    assert np.array_equal(before, after)
    assert len(opened) == 2
