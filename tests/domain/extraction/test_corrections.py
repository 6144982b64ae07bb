"""Statements that retract or replace earlier ones."""

from __future__ import annotations

import pytest

from reverie.domain.extraction.user_corrections import (
    UserCorrection,
    apply_correction,
    correction_applies,
    find_corrections,
)


@pytest.mark.parametrize(
    ("said", "old", "new"),
    [
        ("No longer npm, use pnpm.", "npm", "pnpm"),
        ("We no longer use npm; please use pnpm instead", "npm", "pnpm"),
        ("Don't use moment.js anymore, use date-fns for dates", "moment.js", "date-fns"),
        ("stop using tabs, use two spaces", "tabs", "two spaces"),
        ("Use pnpm instead of npm in this repo.", "npm", "pnpm"),
        ("use `jose` rather than `jsonwebtoken`", "jsonwebtoken", "jose"),
        ("I prefer spaces over tabs", "tabs", "spaces"),
        ("Use pytest, not unittest", "unittest", "pytest"),
        ("Instead of axios, use fetch everywhere", "axios", "fetch"),
        ("We switched from Jenkins to GitHub Actions.", "Jenkins", "GitHub Actions"),
        ("From now on replace axios with fetch", "axios", "fetch"),
        ("Great work! No longer yarn, use bun.", "yarn", "bun"),
        ("不要再用npm了，改用pnpm", "npm", "pnpm"),
        ("以后不用tabs，用spaces", "tabs", "spaces"),
        ("用 pnpm 代替 npm", "npm", "pnpm"),
        ("请使用空格而不是制表符", "制表符", "空格"),
        ("我们已经从 Jenkins 迁移到 GitLab", "Jenkins", "GitLab"),
        ("以后把日志库换成zap", "日志库", "zap"),
    ],
)
def test_a_correction_names_the_old_and_the_new_value(said: str, old: str, new: str) -> None:
    [found] = find_corrections(said)
    assert (found.old, found.new) == (old, new)


def test_two_values_rejected_together_are_two_corrections() -> None:
    found = find_corrections("On JS projects I always use bun, not npm or yarn.")
    assert [(one.old, one.new) for one in found] == [("npm", "bun"), ("yarn", "bun")]


@pytest.mark.parametrize(
    "said",
    [
        "Should we use pnpm instead of npm?",
        "Replace axios with fetch in cart.ts",
        "move the button from the left to the right",
        "If you don't use npm, use pnpm",
        "Why do we use npm instead of pnpm",
        "npm is slow",
        "把这个按钮换成红色",
        "要不要用pnpm代替npm",
        "```\nuse pnpm instead of npm\n```",
        "> use pnpm instead of npm",
        "Use this instead of that",
    ],
)
def test_questions_tasks_conditions_and_quotations_correct_nothing(said: str) -> None:
    assert find_corrections(said) == []


def test_a_memory_that_affirms_the_old_value_is_corrected_and_one_that_denies_it_stays() -> None:
    one = UserCorrection("npm", "pnpm", "No longer npm, use pnpm.", True)
    assert correction_applies(one, "Packages are installed by npm.")
    assert not correction_applies(one, "Never use npm here")
    assert not correction_applies(one, "Use pnpm instead of npm")
    assert not correction_applies(one, "pnpm and npm-run-all are pinned")
    assert apply_correction(one, "Packages are installed by npm.") == (
        "Packages are installed by pnpm (no longer npm)"
    )
    assert apply_correction(one, "We use npm. " * 40) == one.sentence
    two = UserCorrection("制表符", "空格", "用空格而不是制表符", True)
    assert apply_correction(two, "缩进使用制表符。") == "缩进使用空格（不再用制表符）"
    assert not correction_applies(two, "缩进不要用制表符")
