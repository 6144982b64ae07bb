"""Records of talk that only asks and answers, and whole lists and paragraphs in all records."""

from __future__ import annotations

import pytest

from tests.support.extraction import memories, records

TALK = (
    (
        "user",
        "I was looking at `ring.py`, where `Ring.push` copies the buffer. Why does it do that?",
    ),
    (
        "assistant",
        "Oh yeah, that was a fun one. `Ring.push` copies the buffer because readers hold a view of "
        "it, and a view must not change. It costs 3 ms for 1 MB. Let me know if you need more.",
    ),
    ("user", "Makes sense, I guess. It should be fine then. What about `Ring.pop`?"),
    (
        "assistant",
        "`Ring.pop` returns a view of the buffer, so that it allocates nothing. It raises "
        "`EmptyRing` where there is no element.",
    ),
)


def test_talk_that_settles_nothing_leaves_its_questions_with_their_whole_answers() -> None:
    pushed, popped = records(*TALK)
    assert pushed.record is not None
    assert pushed.record["problem"].endswith("Why does it do that?")
    assert pushed.content == (
        "`Ring.push` copies the buffer because readers hold a view of it, and a view must "
        "not change. It costs 3 ms for 1 MB."
    )
    assert popped.content.startswith("`Ring.pop` returns a view of the buffer")
    assert popped.content.endswith("It raises `EmptyRing` where there is no element.")


def test_who_thinks_aloud_decides_nothing() -> None:
    assert not any("Decided" in memory.content for memory in memories(*TALK))


def test_an_answer_keeps_its_code_and_its_yes() -> None:
    code = "```python\nring = Ring(64)\n```"
    (record,) = records(
        ("user", "Can `Ring` be bounded in `ring.py`?"),
        ("assistant", f"Great question! Yes, by its first argument:\n\n{code}\n\nAnything else?"),
    )
    assert record.content == (
        f"Can `Ring` be bounded in `ring.py`?\nAnswer: Yes. By its first argument:\n{code}"
    )


@pytest.mark.parametrize(
    "reply",
    [
        "I think `Ring.push` might copy the buffer, but my memory is fuzzy.",
        "`Ring.push` copies the buffer. I guess that is for the readers. It costs 3 ms for 1 MB.",
        "That whole area was a bit of a nightmare. `Ring.push` was pretty brittle.",
    ],
)
def test_who_only_supposes_gives_no_answer(reply: str) -> None:
    assert records(("user", "Why does `Ring.push` copy the buffer?"), ("assistant", reply)) == []


@pytest.mark.parametrize(
    "question",
    ["Does that affect the others too?", "Do you think we have a philosophy for `Ring`?"],
)
def test_a_question_that_points_back_or_asks_for_an_opinion_leaves_nothing(question: str) -> None:
    reply = "`Ring.pop` returns a view of the buffer, so that it allocates nothing."
    made = records(*TALK[:2], ("user", question), ("assistant", reply))
    assert not any("allocates nothing" in record.content for record in made)


TOOL = ("tool", "Edit: `src/rates.py` [ok]")


def _report(*items: str) -> str:
    return "The rates are fast now.\n\n**Changes:**\n\n" + "\n".join(f"- {item}" for item in items)


def test_a_list_is_kept_whole() -> None:
    items = [f"Added `load_{n}()` to `src/rates_{n}.py`, which reads table {n}" for n in range(6)]
    (record,) = records(
        ("user", "Load the rates of all six."), TOOL, ("assistant", _report(*items))
    )
    assert f"{'; '.join(items)}." in record.content


@pytest.mark.parametrize(("count", "left_out"), [(12, ""), (60, "; and ")])
def test_of_a_long_list_the_heads_are_told_and_what_is_left_out_is_counted(
    count: int, left_out: str
) -> None:
    items = [f"Added `load_{n}()` - {'reads the table of the day ' * 3}" for n in range(count)]
    (record,) = records(("user", "Load the rates of them."), TOOL, ("assistant", _report(*items)))
    assert "Added `load_0()`; Added `load_1()`;" in record.content
    assert "reads the table" not in record.content
    told = record.content.count("Added `load_")
    assert (f"; and {count - told} more" in record.content) is bool(left_out)


def test_a_sentence_keeps_the_one_that_it_leans_on() -> None:
    reply = (
        "The cache is per tenant.\n\nThe build was merged with a limit of 7 entries. This is the "
        "most that fits, because an eighth entry exceeds the page."
    )
    (record,) = records(("user", "Set the limit of the cache, please."), TOOL, ("assistant", reply))
    assert "with a limit of 7 entries. This is the most that fits" in record.content


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        (
            "How does `Ring.push` copy?",
            "`Ring.push` ties into that: it copies at once, by `memcpy`.",
        ),
        ("Does `Ring.push` copy?", "Yes. `Ring.push` copied twice. The fix made it copy once."),
        ("Not just `push`, but `Ring.pop`: does it copy?", "`Ring.pop` copies by `memcpy`."),
        ("Is `Ring.push` slow, or am I missing something?", "It copies the buffer by `memcpy`."),
        (
            "Does `Ring.push` copy?",
            "`Ring.push` copies by `memcpy`. Perhaps we adjusted `Ring.pop` for it as well.",
        ),
    ],
)
def test_an_answer_that_cannot_be_read_alone_is_not_kept(question: str, reply: str) -> None:
    first = (("user", "What is `ring.py` for?"), ("assistant", "Hm."))
    assert not records(*first, ("user", question), ("assistant", reply))


def test_a_question_is_told_with_what_it_asks_beside_it() -> None:
    (record,) = records(
        ("user", "What if a task is put twice into `Queue`? Does it update in place?"),
        ("assistant", "It adds a duplicate by default. `Queue` does not know what a task is."),
    )
    assert record.content.endswith(
        "Does it update in place?\nAnswer: It adds a duplicate by default. "
        "`Queue` does not know what a task is."
    )
