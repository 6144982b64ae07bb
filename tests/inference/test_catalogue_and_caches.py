"""Model catalogue, package sources, token estimates and the embedding cache."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.core.errors import Misconfigured
from reverie.inference.embedder import CachedEmbedder, Vectors
from reverie.inference.model_catalogue import MODELS, get_model_spec
from reverie.inference.model_download import strip_credentials
from reverie.inference.package_sources import PUBLIC_INDEX, load_package_sources
from reverie.inference.token_counters import EstimatingTokenCounter
from reverie.testing.models import FakeEmbedder

LOGIN = "me:" + "s3cr3t"


class CountingEmbedder(FakeEmbedder):
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return await super().embed(texts)


def test_importing_inference_loads_no_model_runtime() -> None:
    code = (
        "import sys, reverie.inference.embedder, reverie.inference.token_counters, "
        "reverie.inference.model_resolver, reverie.testing.models; "
        "print([m for m in ('onnxruntime', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_model_is_refused_with_the_choices() -> None:
    with pytest.raises(Misconfigured, match=r"bge-small-en-v1\.5"):
        get_model_spec("bge-huge")


def test_every_known_model_pins_sha256_and_a_table_name_safe_in_sql() -> None:
    for model in MODELS.values():
        assert model.table.isidentifier()
        assert model.table.islower()
        assert all(len(file.sha256) == 64 and file.size > 0 for file in model.files)


def test_without_configuration_the_public_index_is_used() -> None:
    assert load_package_sources({}, [], []).indexes == (PUBLIC_INDEX,)


def test_indexes_of_uv_and_pip_are_all_tried_and_the_public_one_is_not(tmp_path: Path) -> None:
    pip, uv = tmp_path / "pip.conf", tmp_path / "uv.toml"
    pip.write_text(
        "[global]\nindex-url = https://pip.example/simple/\nextra-index-url = https://a.example\n"
        " https://b.example\ncert = /etc/ca.pem\nfind-links = /opt/wheels\n"
    )
    uv.write_text('[[index]]\nname = "x"\nurl = "https://uv.example/simple"\ndefault = true\n')
    env = {"UV_INDEX": "named=https://named.example/simple", "PIP_PROXY": "http://proxy:3128"}
    found = load_package_sources(env, [pip], [uv])
    assert found.indexes == (
        "https://uv.example/simple",
        "https://pip.example/simple",
        "https://named.example/simple",
        "https://a.example",
        "https://b.example",
    )
    assert (found.cert, found.proxy) == ("/etc/ca.pem", "http://proxy:3128")
    assert found.find_links == ("/opt/wheels",)


def test_the_environment_goes_before_files_and_unreadable_files_are_passed_over(
    tmp_path: Path,
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("= [not a configuration")
    env = {"PIP_INDEX_URL": "https://env.example/simple"}
    assert load_package_sources(env, [broken], [broken]).indexes == ("https://env.example/simple",)


def test_no_index_means_none(tmp_path: Path) -> None:
    found = load_package_sources({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}, [], [])
    assert found.indexes == ()
    assert found.find_links == (str(tmp_path),)


def test_a_place_is_shown_without_its_login() -> None:
    assert (
        strip_credentials(f"https://{LOGIN}@index.example/simple/")
        == "https://index.example/simple/"
    )


@given(st.text(max_size=300), st.integers(min_value=0, max_value=60))
def test_an_estimated_cut_is_a_start_of_the_text_within_the_limit(text: str, limit: int) -> None:
    counter = EstimatingTokenCounter()
    cut = counter.cut(text, limit)
    assert text.startswith(cut)
    assert counter.count(cut) <= limit
    if counter.count(text) <= limit:
        assert cut == text


async def test_the_cache_asks_for_each_text_once() -> None:
    inner = CountingEmbedder()
    cached = CachedEmbedder(inner)
    first = await cached.embed(["a", "b", "a"])
    second = await cached.embed(["b", "c"])
    assert inner.asked == ["a", "b", "c"]
    assert np.array_equal(first[1], second[0])


async def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    inner = CountingEmbedder()
    cached = CachedEmbedder(inner, size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        await cached.embed([text])
    assert inner.asked == ["a", "b", "c", "b"]


async def test_changing_an_answer_does_not_change_the_cache() -> None:
    cached = CachedEmbedder(FakeEmbedder())
    first = await cached.embed(["a"])
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(await cached.embed(["a"]), kept)
