"""What redaction guarantees for any text: idempotence, JSON, long texts."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.domain.redaction.matching import MAX_JUDGED
from reverie.domain.redaction.randomness import is_unpronounceable
from reverie.domain.redaction.redactor import redact, redact_value
from tests.security.fuzz_inputs import EXAMPLES

WORD = "hunter" + "2"
KEY = "sk-" + "proj-" + "aB3dE5gH7jK9" * 4
AWS_ID = "AKIA" + "QWERTYUIOPASDFGH"
DASHES = "-" * 5

PARTS = st.sampled_from(
    [
        "password", "PASSWORD", "token", "api_key", "secret", "key", "Bearer ", "Basic ", "is ",
        "://", "user:", "@host", "sk-", "ghp_", "eyJ", ".eyJ", "rv_", "AKIA", "aB3dE5gH7jK9mN1p",
        "0123456789abcdef", "hunter2", "s3cr3t!", "[REDACTED_TOKEN]", "[REDACTED", "]", "=", ":",
        ": ", '"', "'", "\\", "\\n", "\n", " ", ",", "&", "?", "(", ")", "<", ">", "--", "-u ",
        "curl ", "${X}", "是", "：", "İ", f"{DASHES}BEGIN PRIVATE KEY{DASHES}", "authorization",
        f"{DASHES}END PRIVATE KEY{DASHES}", "name: ", "value: ", "A" * 20, "mysql ", "-p",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=200), st.lists(PARTS, max_size=30).map("".join))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(PARTS, inner, max_size=4)),
    max_leaves=8,
)


@given(st.from_regex("[a-z]{1,12}", fullmatch=True))
def test_a_short_lower_case_word_is_no_credential(word: str) -> None:
    # A space after it has it searched as any text is.
    assert redact(f"{word} ").text == f"{word} "
    assert redact(word).text == word


@settings(max_examples=30 * EXAMPLES)
@given(TEXTS)
def test_redacting_redacted_text_changes_nothing(text: str) -> None:
    once = redact(text)
    twice = redact(once.text)
    assert (twice.text, twice.count, twice.kinds) == (once.text, 0, ())


@settings(max_examples=10 * EXAMPLES)
@given(JSON)
def test_redacting_a_redacted_value_changes_nothing(value: Any) -> None:
    once = redact_value(value)
    twice = redact_value(once.value)
    assert (twice.value, twice.count) == (once.value, 0)


@settings(max_examples=10 * EXAMPLES)
@given(TEXTS, TEXTS)
def test_a_known_key_is_found_in_any_surroundings(before: str, after: str) -> None:
    assert KEY not in redact(f"{before} {KEY} {after}").text


@settings(max_examples=10 * EXAMPLES)
@given(st.lists(st.text(max_size=40), max_size=4), st.integers(1, 3))
def test_redacted_text_written_as_json_contains_nothing_more_to_redact(
    parts: list[str], times: int
) -> None:
    text = redact(" ".join([*parts, f'password = "{WORD}"', KEY, *parts])).text
    for _ in range(times):
        text = json.dumps(text)
    found = redact(text)
    assert (found.text, found.count) == (text, 0)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_credentials_in_json_inside_text_inside_json_are_found(times: int) -> None:
    url = f"postgres://app:{WORD}@db/app"
    text = json.dumps({"password": WORD, "log": f"a\n{KEY}\tb", "dsn": url, "id": AWS_ID})
    for _ in range(times):
        text = json.dumps({"body": text})
    found = redact(text).text
    assert not any(secret in found for secret in (WORD, KEY, AWS_ID))


def test_a_credential_is_found_at_any_position_of_a_long_text() -> None:
    filler = "the quick brown fox jumps over a lazy dog\n" * 3000
    text = f"{filler}token: password={WORD}\n{filler}{KEY}\n{filler}DB_PASSWORD={WORD}"
    found = redact(text)
    assert (WORD in found.text, KEY in found.text) == (False, False)
    assert found.text.count(filler) == 3


def test_the_same_words_are_judged_in_their_context() -> None:
    text = "token: token=abc token: token=" + "aB3dE5gH7jK9mN1p\n"
    assert "aB3dE5" not in redact(text * 3).text


def test_thousands_of_credentials_in_one_text_are_all_redacted() -> None:
    dice = random.Random(7)
    values = [f"{dice.randrange(16**9):09x}k9" for _ in range(MAX_JUDGED + 2000)]
    text = "".join(f"DB_PASSWORD={value}\n" for value in values)
    found = redact(text)
    assert not any(value in found.text for value in values[::97])
    assert values[-1] not in found.text
    assert found.count >= len(values)
    assert redact(found.text).count == 0


@pytest.mark.parametrize(
    "shape",
    [
        '{{"password": "{}"}},\n',
        'login("a", "{}")\n',
        'connect("a", "{}",',
        'jwt.sign(user, "{}Z")\n',
        "--token {} ",
        "curl -u a:{} ",
        "<password x>{}</password>",
        "insert into t (password) values ('{}');",
        "authorization: bearer {}\n",
        "name: my_token, value: {}\n",
    ],
)
def test_each_of_thousands_of_secrets_is_redacted_once(shape: str) -> None:
    dice = random.Random(8)
    values = [f"{dice.randrange(16**15):015x}k9" for _ in range(MAX_JUDGED + 500)]
    found = redact("".join(map(shape.format, values)))
    assert not any(value in found.text for value in values)
    assert found.count == len(values)
    assert redact(found.text).count == 0


def test_thousands_of_pairs_with_harmless_names_are_kept() -> None:
    pairs = [f"name: title_{n}, value: w{n}x4k\n" for n in range(MAX_JUDGED + 500)]
    assert redact("".join(pairs)).count == 0


def test_a_putty_key_is_redacted_and_its_comment_kept() -> None:
    body = "\n".join("AAAAB3NzaC1yc2EAAAADAQABAAABAQ" + "Ab9+/" * 6 for _ in range(3))
    head = "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: me\nPublic-Lines: 1\nAAAA\n"
    text = f"{head}Private-Lines: 3\n{body}\nPrivate-MAC: 00"
    assert redact(text).text == f"{head}Private-Lines: 3\n[REDACTED_PRIVATE_KEY]\nPrivate-MAC: 00"


@settings(max_examples=10 * EXAMPLES)
@given(TEXTS)
def test_a_text_without_findings_is_returned_unchanged(text: str) -> None:
    found = redact(text)
    assert (found.text == text) == (found.count == 0)


@pytest.mark.parametrize(
    ("text", "redacted", "kinds"),
    [
        (f"use {KEY} here", "use [REDACTED_API_KEY] here", ("API_KEY",)),
        (f"id {AWS_ID}", "id [REDACTED_AWS_KEY]", ("AWS_KEY",)),
        (f"DB_PASSWORD={WORD}", "DB_PASSWORD=[REDACTED_PASSWORD]", ("PASSWORD",)),
        (f"pg://a:{WORD}@h/x", "pg://a:[REDACTED_URL_PASSWORD]@h/x", ("URL_PASSWORD",)),
    ],
)
def test_the_placeholder_names_the_kind_and_the_rest_is_kept(
    text: str, redacted: str, kinds: tuple[str, ...]
) -> None:
    found = redact(text)
    assert (found.text, found.count, found.kinds) == (redacted, 1, kinds)


def test_a_private_key_is_redacted_whole_and_the_text_after_it_kept() -> None:
    body = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEF" + "Ab9+/" * 7 for _ in range(5))
    begin, end = f"{DASHES}BEGIN PRIVATE KEY{DASHES}", f"{DASHES}END PRIVATE KEY{DASHES}"
    assert redact(f"a\n{begin}\n{body}\n{end}\nb").text == "a\n[REDACTED_PRIVATE_KEY]\nb"
    cut = redact(f"a\n{begin}\n{body}\n\nThe rest of the answer.").text
    assert cut.startswith("a\n[REDACTED_PRIVATE_KEY]")
    assert cut.endswith("The rest of the answer.")


def test_a_password_with_punctuation_leaves_no_tail() -> None:
    odd = "Tr0ub" + "4dor&3=x"
    assert redact(f"DB_PASSWORD={odd}").text == "DB_PASSWORD=[REDACTED_PASSWORD]"


def test_a_value_after_two_nested_names_is_redacted() -> None:
    assert WORD not in redact(f"token: password={WORD}").text


def test_a_key_determines_how_its_value_is_judged() -> None:
    found = redact_value({"db": {"password": WORD, "port": 5432}, "tags": [KEY], "n": None})
    assert found.value == {
        "db": {"password": "[REDACTED_PASSWORD]", "port": 5432},
        "tags": ["[REDACTED_API_KEY]"],
        "n": None,
    }
    assert (found.count, found.kinds) == (2, ("API_KEY", "PASSWORD"))


def test_a_number_under_a_password_key_is_redacted() -> None:
    assert redact_value({"password": 12345678, "tokens": 12345678}).value == {
        "password": "[REDACTED_PASSWORD]",
        "tokens": 12345678,
    }


def test_credentials_in_keys_are_replaced_and_no_entry_is_lost() -> None:
    other = KEY.replace("aB", "bA")
    found = redact_value({KEY: 1, other: 2, "x": 3})
    assert sorted(found.value.values()) == [1, 2, 3]
    assert not any(re.search("proj", key) for key in found.value)


def test_a_value_without_credentials_is_returned_equal() -> None:
    value = {"commit": "0123456789abcdef" * 2 + "01234567", "lines": [1, 2.5], "ok": True}
    found = redact_value(value)
    assert (found.value, found.count, found.kinds) == (value, 0, ())


def test_credentials_before_within_and_after_a_long_list_are_redacted() -> None:
    rows = [f"password={number * 7919 * 104729:09x}Zk7\n" for number in range(3000)]
    body = "MIIEabcd0123" * 8
    pem = f"{DASHES}BEGIN PRIVATE KEY{DASHES}\n{body}\n{DASHES}END PRIVATE KEY{DASHES}\n"
    others = [f"{LOG_LINE}curl -u ann:q{place}w2e3r4 {KEY}{place}\n{pem}" for place in range(3)]
    once = redact(f"{others[0]}{''.join(rows[:1500])}{others[1]}{''.join(rows[1500:])}{others[2]}")
    assert once.text.startswith(LOG_LINE)
    assert LOG_LINE in once.text[len(LOG_LINE) :]
    assert not any(secret in once.text for secret in (KEY, body, "w2e3r4", "password=0"))
    assert once.count >= len(rows)
    assert redact(once.text).text == once.text


def test_a_letter_that_lower_cases_to_two_does_not_shift_the_match() -> None:
    assert redact("İ ПАРОЛЬ: hunter2Zk7\n").text == "İ ПАРОЛЬ: [REDACTED_PASSWORD]\n"


LOG_LINE = "INFO request 17 handled by worker 3 path=/api/v1/items\n"


@pytest.mark.parametrize(("beside", "kept"), [(40, True), (5, True), (1, False)])
def test_scattered_credentials_are_redacted_alone_and_dense_ones_with_the_text_between(
    beside: int, kept: bool
) -> None:
    secrets = [f"{number * 7919 * 104729:09x}Zk7" for number in range(450_000 // beside // 60)]
    once = redact("".join(f"{LOG_LINE * beside}password={secret}\n" for secret in secrets))
    assert not any(secret in once.text for secret in secrets)
    assert once.count == len(secrets)
    assert (once.text.count(LOG_LINE) == beside * len(secrets)) is kept
    assert redact(once.text).text == once.text


def test_random_strings_are_distinguished_from_words() -> None:
    words = "authentication_backend_settings configuration sunshine keyboardInterrupt"
    assert not any(map(is_unpronounceable, words.split()))
    assert is_unpronounceable("xbjqtfu" + "tvaa" + "rskeN3")
