"""Detection of blank text and of East Asian scripts."""

from __future__ import annotations

import pytest

from reverie.domain.text.characters import (
    MIN_EAST_ASIAN_TEXTS,
    is_blank,
    is_east_asian,
    is_mostly_east_asian,
)
from reverie.runtime.settings.settings import Settings
from reverie_services.ingest.enrich.model_selection import may_choose_model


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b\u2060\ufeff", "\u2800", "\u3164\ufe0f", "\u202e"]
)
def test_invisible_text_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize(
    "text", ["a", "\u200bа\u200b", "👩\u200d🚀", "ก็", ".", "\u202eabc", "❤\ufe0f"]
)
def test_text_with_something_invisible_is_not_blank(text: str) -> None:
    assert not is_blank(text)


CHINESE, ENGLISH = "空闲连接十秒就回收", "Idle connections are closed after ten seconds"


@pytest.mark.parametrize(
    "text",
    [
        CHINESE,
        "PaymentCallbackController 收到重复通知直接返回 200，不再入账。",
        "キャッシュの有効期限にはばらつきを持たせる。",
        "캐시 만료 시간에 무작위 값을 더한다.",
        "佇列塞住時先檢查有沒有壞訊息",
    ],
)
def test_a_text_is_east_asian_if_most_of_its_words_are(text: str) -> None:
    assert is_east_asian(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "200 -> 404!",
        ENGLISH,
        "Повторные попытки ограничены тремя",
        "The label of the button reads 保存, and must fit into 80 pixels",
        "src/middleware/auth.ts と src/routes/login.ts",
    ],
)
def test_a_text_with_one_east_asian_word_is_not_east_asian(text: str) -> None:
    assert not is_east_asian(text)


def test_a_set_of_texts_is_east_asian_if_half_of_enough_texts_are() -> None:
    assert is_mostly_east_asian([CHINESE] * MIN_EAST_ASIAN_TEXTS)
    assert is_mostly_east_asian([CHINESE, ENGLISH] * MIN_EAST_ASIAN_TEXTS)
    assert not is_mostly_east_asian([CHINESE, ENGLISH, ENGLISH] * MIN_EAST_ASIAN_TEXTS)
    assert not is_mostly_east_asian([CHINESE] * (MIN_EAST_ASIAN_TEXTS - 1))
    assert not is_mostly_east_asian([])


def test_no_tenant_is_moved_when_another_model_is_configured() -> None:
    assert may_choose_model(Settings())
    assert not may_choose_model(Settings(embedding_model="another"))
    assert not may_choose_model(Settings(auto_multilingual_model=False))
