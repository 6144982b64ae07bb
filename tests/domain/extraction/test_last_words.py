"""A summing-up is all that a record tells of what was decided before it."""

from __future__ import annotations

from tests.support.extraction import records

TALK = (
    ("user", "Secrets stand in our logs: a nested user_password was readable there."),
    ("assistant", "I'd mask each key that contains `password`, `token` or `email`."),
    (
        "user",
        "No, 'contains' is too broad: match on how the key ends. And do not mask `email`, as "
        "support needs it.",
    ),
    (
        "assistant",
        "Final rule: a key of `redact` is masked where it ends with `password` or `token`, its "
        "value becomes '***', `card_number` keeps its last four as '***1234', and `__slots__` "
        "and `email` are never masked.",
    ),
)


def test_a_summing_up_is_told_alone_beside_what_was_refused() -> None:
    (record,) = records(*TALK)
    (decided,) = [line for line in record.content.splitlines() if line.startswith("Decided: ")]
    assert decided.startswith("Decided: Final rule: a key of `redact` is masked")
    assert "match on how the key ends" not in decided
    assert "Refused: " in record.content


def test_stars_in_quotes_and_names_between_underscores_are_no_emphasis() -> None:
    (record,) = records(*TALK[:3], ("assistant", TALK[3][1].replace("`__slots__`", "__slots__")))
    assert "becomes '***'" in record.content
    assert "'***1234'" in record.content
    assert "__slots__" in record.content
