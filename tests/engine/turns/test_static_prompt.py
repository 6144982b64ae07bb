"""The static prompt of an agent: the same templates in both languages, the same bytes each time."""

from __future__ import annotations

import re

import pytest

from reverie_services.engine.prompts import PERSONAS, build_static_prompt, load_templates


def test_both_languages_have_the_same_templates() -> None:
    english, chinese = load_templates("en"), load_templates("zh")
    assert english.keys() == chinese.keys()
    assert english.keys() > {f"persona-{name}" for name in PERSONAS}
    for name, text in english.items():
        places = re.findall(r"\{\w+\}", text)
        assert sorted(places) == sorted(re.findall(r"\{\w+\}", chinese[name]))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("mode", ["unified", "plan", "dream"])
def test_the_static_prompt_has_the_same_bytes_every_time(language: str, mode: str) -> None:
    first = build_static_prompt("ada", language, "beck", mode, ["bob", "cy"], ["recall", "x"])
    second = build_static_prompt("ada", language, "beck", mode, ["cy", "bob"], ["x", "recall"])
    assert first.encode() == second.encode()
    assert "{" not in first
    assert load_templates(language)["persona-beck"] in first
