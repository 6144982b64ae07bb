"""What was recalled is told from what is new."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.fence import CLOSE, OPEN, TITLE, harmless, strip, wrap

BLOCK = wrap(f"{TITLE}\n_Recalled data._\n\n### Lessons\n- [global 00000001] Drain the queue")
QUOTED = "\n".join(f"> {line}" for line in BLOCK.splitlines())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (BLOCK, ""),
        (f"before\n{BLOCK}\nafter", "before\nafter"),
        (f"one\n{BLOCK}\ntwo\n{BLOCK}\nthree", "one\ntwo\nthree"),
        (f"before\n{BLOCK.removesuffix(CLOSE)}", "before\n"),
        (f"before\n{BLOCK.replace(chr(10), chr(13) + chr(10))}\r\nafter", "before\nafter"),
        (f"before\n{QUOTED}\nafter", "before\nafter"),
        (f"before\n> {QUOTED.replace(chr(10), chr(10) + '> ')}\nafter", "before\nafter"),
        (f"before\n{QUOTED.removesuffix('> ' + CLOSE)}after", "before\nafter"),
        ("before\n    " + BLOCK.replace("\n", "\n    ") + "\nafter", "before\nafter"),
        ("before\n" + BLOCK.replace("\n", " │\n│ ") + "\nafter", "before\nafter"),
        (f"before\n{BLOCK.upper()}\nafter", "before\nafter"),
        (f"before\n{BLOCK} after", "before\n after"),
        (f"{CLOSE}\nafter", "after"),
        ('{"context": "' + BLOCK.replace("\n", "\\n") + '", "n": 1}', '{"context": "", "n": 1}'),
        ("see " + " ".join(BLOCK.split()) + " here", "see  here"),
    ],
)
def test_a_fenced_block_is_cut_out_however_it_came_back(text: str, left: str) -> None:
    assert strip(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing fenced\r\n\n  at all ",
        f"The block stands between `{OPEN}` and `{CLOSE}`.",
        f"Use `{OPEN}` in the template.\nThen go on.",
    ],
)
def test_what_is_not_fenced_stays_as_it_is(text: str) -> None:
    assert strip(text) == text


lines = st.sampled_from([OPEN, CLOSE, f"> {OPEN}", f"> {CLOSE}", "> said", "said", "", TITLE])
talk = st.lists(lines | st.text(max_size=20), max_size=12).map("\n".join)


@given(talk)
def test_stripping_again_changes_nothing_and_leaves_no_fence(text: str) -> None:
    once = strip(text)
    assert strip(once) == once
    assert not {OPEN, CLOSE} & {line.strip() for line in once.splitlines()}


@given(st.text(), talk, st.text())
def test_what_is_wrapped_is_gone_after_stripping(before: str, inside: str, after: str) -> None:
    block = wrap(harmless(inside))
    own = f"{harmless(before)}\n", f"\n{harmless(after)}"
    assert strip(f"{own[0]}{block}{own[1]}") == f"{own[0]}{own[1].removeprefix(chr(10))}"


def test_many_tags_are_read_in_one_pass() -> None:
    open_ones = f"> {OPEN}\nsaid\n" * 20_000
    assert strip(open_ones) == "said\n" * 20_000
