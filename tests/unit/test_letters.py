"""Texts by the letters they are written in."""

from __future__ import annotations

import pytest

from reverie.domain.letters import LEAST, are_east_asian, is_east_asian
from reverie.ingest.settings import ingest_settings
from reverie.runtime.settings import Settings

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
def test_a_text_is_east_asian_where_most_of_its_words_are(text: str) -> None:
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
def test_a_text_is_not_east_asian_for_a_word_of_it(text: str) -> None:
    assert not is_east_asian(text)


def test_many_texts_are_east_asian_where_half_of_them_are_and_they_are_not_few() -> None:
    assert are_east_asian([CHINESE] * LEAST)
    assert are_east_asian([CHINESE, ENGLISH] * LEAST)
    assert not are_east_asian([CHINESE, ENGLISH, ENGLISH] * LEAST)
    assert not are_east_asian([CHINESE] * (LEAST - 1))
    assert not are_east_asian([])


def test_nobody_is_moved_where_another_model_is_set() -> None:
    assert ingest_settings(Settings()).model_by_letters
    assert not ingest_settings(Settings(model="another")).model_by_letters
    assert not ingest_settings(Settings(model_by_letters=False)).model_by_letters
