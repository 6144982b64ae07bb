"""What a diff hunk changes: code or not, symbols, identifiers."""

from __future__ import annotations

import pytest

from reverie.agent.git.hunk_analysis import (
    classify_hunk,
    find_header_symbol,
    find_identifiers,
    find_symbols,
)


@pytest.mark.parametrize(
    ("path", "removed", "added", "kind"),
    [
        ("a.go", "x := f(a, b)", "x  :=  f(a,\n\tb)", "space"),
        ("a.go", "", "\n\n", "space"),
        ("a.js", "return x", "return\nx", "code"),
        ("a.js", 'say("a  b")', 'say("a b")', "code"),
        ("a.py", "    return x", "        return x", "code"),
        ("a.py", "x = 1", "x  =  1   ", "space"),
        ("a.yaml", "  a: 1", "a: 1", "code"),
        ("a.py", "x = 1  # one", "x = 1  # the first", "comment"),
        ("a.py", "# old", "", "comment"),
        ("a.py", 'x = "# 1"', 'x = "# 2"', "code"),
        ("a.py", "x = 1  # one", "x = 2  # one", "code"),
        ("a.ts", "// old\n * more", "/* new */", "comment"),
        ("a.ts", 'u = "http://a"', 'u = "http://b"', "code"),
        ("a.ts", "a = b * c", "a = b * d", "code"),
        ("a.sql", "-- old", "-- new", "comment"),
        ("a.rs", "fn f<'a>(x: &'a str) // old", "fn f<'a>(x: &'a str) // new", "comment"),
        ("Makefile", "# old", "# new", "comment"),
        ("a.md", "# Old", "# New", "code"),
        ("a.md", "one two\nthree", "one\ntwo three", "space"),
        ("notes", "# old", "# new", "code"),
        ("a.unheard", "# old", "# new", "code"),
    ],
)
def test_a_hunk_without_code_changes_is_recognized_and_doubtful_ones_count_as_code(
    path: str, removed: str, added: str, kind: str
) -> None:
    old, new = (text.split("\n") if text else [] for text in (removed, added))
    assert classify_hunk(path, old, new) == kind


@pytest.mark.parametrize(
    ("path", "line", "name"),
    [
        ("a.py", "    async def fetch(self):", "fetch"),
        ("a.py", "class Loop(Base):", "Loop"),
        ("a.py", "MOST_STEPS: Final = 3", "MOST_STEPS"),
        ("a.go", "func (s *Store) Put(key string) error {", "Put"),
        ("a.rs", "pub(crate) async fn run<T>(x: T)", "run"),
        ("a.ts", "export default class Cart {", "Cart"),
        ("a.ts", "export const total = async (x) => {", "total"),
        ("a.java", "public static final class Key {", "Key"),
        ("a.sql", "create or replace function enter(p int)", "enter"),
        ("a.md", "## How it works ##", "How it works"),
        ("a.py", "# Not a heading", None),
        ("a.py", "result = define(x)", None),
    ],
)
def test_definitions_are_recognized_by_their_line(path: str, line: str, name: str | None) -> None:
    assert find_symbols(path, [line]) == ([name] if name else [])


def test_a_hunk_header_names_the_function_in_languages_without_a_keyword() -> None:
    assert find_header_symbol("a.c", "static int put_page(struct page *p)") == "put_page"
    assert find_header_symbol("a.py", "def g(self):") == "g"
    assert find_header_symbol("a.c", "") is None


def test_identifiers_are_taken_from_code_and_not_from_strings_or_comments() -> None:
    old = ['token = read("hunter2secret")  # rotate weekly', "keep = total"]
    new = ["token = fetch('hunter3secret', `x y z`)", "keep = total", 'open("unclosed secret']
    assert find_identifiers("a.py", old, new) == ["read", "fetch", "open", "token", "keep", "total"]
    assert find_identifiers("a.md", ["some words here"], []) == []
    assert find_identifiers(".env", ["PASSWORD=hunter2"], ["PASSWORD=hunter3"]) == []
