"""The time a question speaks of, in English and Chinese, as a span of moments. By rule, pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

DAY = timedelta(days=1)
MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH = "|".join(f"{name}|{name[:3]}" for name in MONTHS)
_UNITS = {"day": DAY, "week": 7 * DAY, "month": 30 * DAY, "year": 365 * DAY, "hour": DAY / 24}
_CHINESE_UNITS = {
    "天": "day",
    "日": "day",
    "周": "week",
    "星期": "week",
    "个月": "month",
    "年": "year",
}
_CHINESE_NUMBERS = {name: number for number, name in enumerate("一二三四五六七八九十", start=1)} | {
    "两": 2
}


@dataclass(frozen=True)
class Period:
    """From `since`, including it, to `until`, excluding it."""

    since: datetime
    until: datetime

    def holds(self, at: datetime) -> bool:
        """Whether a moment lies within."""
        return self.since <= at < self.until


def period_of(text: str, now: datetime) -> Period | None:
    """The first time that `text` names, or None; days begin at midnight in the zone of `now`."""
    for pattern, meaning in _RULES:
        found = pattern.search(text)
        if found is None:
            continue
        try:
            return meaning(found, now)
        except (ValueError, OverflowError):  # 31 February, a million years ago
            continue
    return None


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _day(year: int, month: int, day: int, now: datetime) -> Period:
    begin = _midnight(now).replace(year=year, month=month, day=day)
    return Period(begin, begin + DAY)


def _month(year: int, month: int, now: datetime) -> Period:
    begin = _midnight(now).replace(year=year, month=month, day=1)
    return Period(begin, _next_month(begin))


def _next_month(first: datetime) -> datetime:
    return (first + 31 * DAY).replace(day=1)


def _year(year: int, now: datetime) -> Period:
    begin = _midnight(now).replace(year=year, month=1, day=1)
    return Period(begin, begin.replace(year=year + 1))


def _month_number(name: str) -> int:
    return next(n for n, month in enumerate(MONTHS, start=1) if month[:3] == name.lower()[:3])


def _iso(found: re.Match[str], now: datetime) -> Period:
    year, month, day = found.groups()
    return _day(int(year), int(month), int(day), now) if day else _month(int(year), int(month), now)


def _named_day(found: re.Match[str], now: datetime) -> Period:
    day = int(found["before"] or found["after"])
    return _day(_told_year(found, now), _month_number(found["month"]), day, now)


def _named_month(found: re.Match[str], now: datetime) -> Period:
    return _month(_told_year(found, now), _month_number(found["month"]), now)


def _told_year(found: re.Match[str], now: datetime) -> int:
    """The year that is named; without one the last in which the month has begun."""
    if found["year"]:
        return int(found["year"])
    return now.year if _month_number(found["month"]) <= now.month else now.year - 1


def _ago(found: re.Match[str], now: datetime) -> Period:
    """A stretch around so long ago, as wide as its unit."""
    count = int(found[1]) if found[1].isdigit() else 1
    return _around(count, found[2].lower(), now)


def _chinese_ago(found: re.Match[str], now: datetime) -> Period:
    count = _CHINESE_NUMBERS.get(found[1]) or int(found[1])
    return _around(count, _CHINESE_UNITS[found[2]], now)


def _around(count: int, unit: str, now: datetime) -> Period:
    width = max(_UNITS[unit], DAY)
    middle = _midnight(now) + DAY / 2 - count * _UNITS[unit]
    return Period(middle - width / 2, middle + width / 2)


def _lately(found: re.Match[str], now: datetime) -> Period:
    unit = (found[2] or "").lower()
    span = int(found[1] or 1) * _UNITS[unit] if unit else 7 * DAY
    return Period(now - span, now + DAY)


def _relative(days: int) -> Callable[[re.Match[str], datetime], Period]:
    def meaning(found: re.Match[str], now: datetime) -> Period:
        begin = _midnight(now) - days * DAY
        return Period(begin, begin + DAY)

    return meaning


def _week(back: int) -> Callable[[re.Match[str], datetime], Period]:
    def meaning(found: re.Match[str], now: datetime) -> Period:
        monday = _midnight(now) - now.weekday() * DAY - back * 7 * DAY
        return Period(monday, monday + 7 * DAY)

    return meaning


def _calendar_month(back: int) -> Callable[[re.Match[str], datetime], Period]:
    def meaning(found: re.Match[str], now: datetime) -> Period:
        first = _midnight(now).replace(day=1)
        if back:
            return Period((first - DAY).replace(day=1), first)
        return Period(first, _next_month(first))

    return meaning


def _calendar_year(back: int) -> Callable[[re.Match[str], datetime], Period]:
    return lambda _, now: _year(now.year - back, now)


def _rule(
    pattern: str, meaning: Callable[[re.Match[str], datetime], Period]
) -> tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Period]]:
    return re.compile(pattern, re.IGNORECASE), meaning


_YEAR = r"(?:,?\s+(?P<year>(?:19|20)\d\d))?"
_RULES = (
    _rule(r"\b((?:19|20)\d\d)[-/.](\d{1,2})(?:[-/.](\d{1,2}))?\b", _iso),
    _rule(r"((?:19|20)\d\d)年(\d{1,2})月(?:(\d{1,2})[日号])?", _iso),
    _rule(
        rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)(?P<month>{_MONTH})\b{_YEAR}(?P<after>)",
        _named_day,
    ),
    _rule(
        rf"\b(?P<month>{_MONTH})\.?\s+(?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d){_YEAR}(?P<before>)",
        _named_day,
    ),
    _rule(rf"\b(?P<month>{_MONTH})\.?,?\s+(?P<year>(?:19|20)\d\d)\b", _named_month),
    _rule(
        rf"\b(?:in|during|since|from|until|of|last|early|late|mid)[\s-]+(?P<month>{_MONTH})\b(?P<year>)",
        _named_month,
    ),
    _rule(r"\b(\d{1,3}|an?) (day|week|month|year|hour)s? ago\b", _ago),
    _rule(r"(\d{1,3}|[一二两三四五六七八九十])(天|日|周|星期|个月|年)(?:之)?前", _chinese_ago),
    _rule(r"\bday before yesterday\b|前天", _relative(2)),
    _rule(r"\byesterday\b|昨天|昨日", _relative(1)),
    _rule(r"\btoday\b|\bthis (?:morning|afternoon|evening)\b|今天|今日", _relative(0)),
    _rule(r"\blast week\b|上(?:个)?(?:周|星期)", _week(1)),
    _rule(r"\bthis week\b|本周|这(?:个)?(?:周|星期)", _week(0)),
    _rule(r"\blast month\b|上个?月", _calendar_month(1)),
    _rule(r"\bthis month\b|本月|这个月", _calendar_month(0)),
    _rule(r"\blast year\b|去年", _calendar_year(1)),
    _rule(r"\bthis year\b|今年", _calendar_year(0)),
    _rule(r"\b(?:past|last|previous) (\d{1,3})? ?(day|week|month|year|hour)s?\b", _lately),
    _rule(
        r"\brecent(?:ly)?()()\b|\blately()()\b|最近()()",
        lambda f, now: Period(now - 7 * DAY, now + DAY),
    ),
    _rule(
        r"\bin ((?:19|20)\d\d)\b|((?:19|20)\d\d)年", lambda f, now: _year(int(f[1] or f[2]), now)
    ),
)
