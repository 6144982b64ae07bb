"""Recalled memory is fenced, and the fence is stripped when it comes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.text.memory_fence import (
    CLOSE_TAG,
    MEMORY_TITLE,
    OPEN_TAG,
    escape_fence_tags,
    strip_fenced,
    wrap_in_fence,
)

BLOCK = wrap_in_fence(
    f"{MEMORY_TITLE}\n_Recalled data._\n\n### Lessons\n- [global 00000001] Drain the queue"
)
QUOTED = "\n".join(f"> {line}" for line in BLOCK.splitlines())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (BLOCK, ""),
        (f"before\n{BLOCK}\nafter", "before\nafter"),
        (f"one\n{BLOCK}\ntwo\n{BLOCK}\nthree", "one\ntwo\nthree"),
        (f"before\n{BLOCK.removesuffix(CLOSE_TAG)}", "before\n"),
        (f"before\n{BLOCK.replace(chr(10), chr(13) + chr(10))}\r\nafter", "before\nafter"),
        (f"before\n{QUOTED}\nafter", "before\nafter"),
        (f"before\n> {QUOTED.replace(chr(10), chr(10) + '> ')}\nafter", "before\nafter"),
        (f"before\n{QUOTED.removesuffix('> ' + CLOSE_TAG)}after", "before\nafter"),
        ("before\n    " + BLOCK.replace("\n", "\n    ") + "\nafter", "before\nafter"),
        ("before\n" + BLOCK.replace("\n", " │\n│ ") + "\nafter", "before\nafter"),
        (f"before\n{BLOCK.upper()}\nafter", "before\nafter"),
        (f"before\n{BLOCK} after", "before\n after"),
        (f"{CLOSE_TAG}\nafter", "after"),
        ('{"context": "' + BLOCK.replace("\n", "\\n") + '", "n": 1}', '{"context": "", "n": 1}'),
        ("see " + " ".join(BLOCK.split()) + " here", "see  here"),
    ],
)
def test_a_fenced_block_is_removed_in_any_form(text: str, left: str) -> None:
    assert strip_fenced(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing fenced\r\n\n  at all ",
        f"The block stands between `{OPEN_TAG}` and `{CLOSE_TAG}`.",
        f"Use `{OPEN_TAG}` in the template.\nThen go on.",
    ],
)
def test_text_outside_fences_is_kept(text: str) -> None:
    assert strip_fenced(text) == text


lines = st.sampled_from(
    [OPEN_TAG, CLOSE_TAG, f"> {OPEN_TAG}", f"> {CLOSE_TAG}", "> said", "said", "", MEMORY_TITLE]
)
talk = st.lists(lines | st.text(max_size=20), max_size=12).map("\n".join)


@given(talk)
def test_stripping_is_idempotent_and_leaves_no_fence(text: str) -> None:
    once = strip_fenced(text)
    assert strip_fenced(once) == once
    assert not {OPEN_TAG, CLOSE_TAG} & {line.strip() for line in once.splitlines()}


@given(st.text(), talk, st.text())
def test_wrapped_text_is_removed_by_stripping(before: str, inside: str, after: str) -> None:
    block = wrap_in_fence(escape_fence_tags(inside))
    own = f"{escape_fence_tags(before)}\n", f"\n{escape_fence_tags(after)}"
    assert strip_fenced(f"{own[0]}{block}{own[1]}") == f"{own[0]}{own[1].removeprefix(chr(10))}"


def test_many_tags_are_read_in_one_pass() -> None:
    open_ones = f"> {OPEN_TAG}\nsaid\n" * 20_000
    assert strip_fenced(open_ones) == "said\n" * 20_000
