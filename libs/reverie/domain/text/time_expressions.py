"""Parsing of English and Chinese time expressions into a range of datetimes."""

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
class TimeRange:
    """The time from `since` (inclusive) to `until` (exclusive)."""

    since: datetime
    until: datetime

    def contains(self, at: datetime) -> bool:
        """Returns whether a time is in the range."""
        return self.since <= at < self.until


def parse_time_range(text: str, now: datetime) -> TimeRange | None:
    """The first time expression in a text, or None. Days begin at midnight in the zone of `now`."""
    for pattern, resolve in _RULES:
        match = pattern.search(text)
        if match is None:
            continue
        try:
            return resolve(match, now)
        except (ValueError, OverflowError):  # 31 February, a million years ago
            continue
    return None


def _start_of_day(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _day_range(year: int, month: int, day: int, now: datetime) -> TimeRange:
    begin = _start_of_day(now).replace(year=year, month=month, day=day)
    return TimeRange(begin, begin + DAY)


def _month_range(year: int, month: int, now: datetime) -> TimeRange:
    begin = _start_of_day(now).replace(year=year, month=month, day=1)
    return TimeRange(begin, _start_of_next_month(begin))


def _start_of_next_month(first: datetime) -> datetime:
    return (first + 31 * DAY).replace(day=1)


def _year_range(year: int, now: datetime) -> TimeRange:
    begin = _start_of_day(now).replace(year=year, month=1, day=1)
    return TimeRange(begin, begin.replace(year=year + 1))


def _parse_month(name: str) -> int:
    return next(n for n, month in enumerate(MONTHS, start=1) if month[:3] == name.lower()[:3])


def _resolve_iso(match: re.Match[str], now: datetime) -> TimeRange:
    year, month, day = match.groups()
    return (
        _day_range(int(year), int(month), int(day), now)
        if day
        else _month_range(int(year), int(month), now)
    )


def _resolve_named_day(match: re.Match[str], now: datetime) -> TimeRange:
    day = int(match["before"] or match["after"])
    return _day_range(_explicit_or_latest_year(match, now), _parse_month(match["month"]), day, now)


def _resolve_named_month(match: re.Match[str], now: datetime) -> TimeRange:
    return _month_range(_explicit_or_latest_year(match, now), _parse_month(match["month"]), now)


def _explicit_or_latest_year(match: re.Match[str], now: datetime) -> int:
    """The named year, or else the last one in which the month has begun."""
    if match["year"]:
        return int(match["year"])
    return now.year if _parse_month(match["month"]) <= now.month else now.year - 1


def _resolve_ago(match: re.Match[str], now: datetime) -> TimeRange:
    """A range of one unit around the time that long ago."""
    count = int(match[1]) if match[1].isdigit() else 1
    return _range_around(count, match[2].lower(), now)


def _resolve_chinese_ago(match: re.Match[str], now: datetime) -> TimeRange:
    count = _CHINESE_NUMBERS.get(match[1]) or int(match[1])
    return _range_around(count, _CHINESE_UNITS[match[2]], now)


def _range_around(count: int, unit: str, now: datetime) -> TimeRange:
    width = max(_UNITS[unit], DAY)
    middle = _start_of_day(now) + DAY / 2 - count * _UNITS[unit]
    return TimeRange(middle - width / 2, middle + width / 2)


def _resolve_recent(match: re.Match[str], now: datetime) -> TimeRange:
    unit = (match[2] or "").lower()
    span = int(match[1] or 1) * _UNITS[unit] if unit else 7 * DAY
    return TimeRange(now - span, now + DAY)


def _relative_day(days: int) -> Callable[[re.Match[str], datetime], TimeRange]:
    def meaning(match: re.Match[str], now: datetime) -> TimeRange:
        begin = _start_of_day(now) - days * DAY
        return TimeRange(begin, begin + DAY)

    return meaning


def _calendar_week(weeks_back: int) -> Callable[[re.Match[str], datetime], TimeRange]:
    def meaning(match: re.Match[str], now: datetime) -> TimeRange:
        monday = _start_of_day(now) - now.weekday() * DAY - weeks_back * 7 * DAY
        return TimeRange(monday, monday + 7 * DAY)

    return meaning


def _calendar_month(months_back: int) -> Callable[[re.Match[str], datetime], TimeRange]:
    def meaning(match: re.Match[str], now: datetime) -> TimeRange:
        first = _start_of_day(now).replace(day=1)
        if months_back:
            return TimeRange((first - DAY).replace(day=1), first)
        return TimeRange(first, _start_of_next_month(first))

    return meaning


def _calendar_year(years_back: int) -> Callable[[re.Match[str], datetime], TimeRange]:
    return lambda _, now: _year_range(now.year - years_back, now)


def _compile_rule(
    pattern: str, resolve: Callable[[re.Match[str], datetime], TimeRange]
) -> tuple[re.Pattern[str], Callable[[re.Match[str], datetime], TimeRange]]:
    return re.compile(pattern, re.IGNORECASE), resolve


_YEAR = r"(?:,?\s+(?P<year>(?:19|20)\d\d))?"
_RULES = (
    _compile_rule(r"\b((?:19|20)\d\d)[-/.](\d{1,2})(?:[-/.](\d{1,2}))?\b", _resolve_iso),
    _compile_rule(r"((?:19|20)\d\d)年(\d{1,2})月(?:(\d{1,2})[日号])?", _resolve_iso),
    _compile_rule(
        rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)(?P<month>{_MONTH})\b{_YEAR}(?P<after>)",
        _resolve_named_day,
    ),
    _compile_rule(
        rf"\b(?P<month>{_MONTH})\.?\s+(?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d){_YEAR}(?P<before>)",
        _resolve_named_day,
    ),
    _compile_rule(rf"\b(?P<month>{_MONTH})\.?,?\s+(?P<year>(?:19|20)\d\d)\b", _resolve_named_month),
    _compile_rule(
        rf"\b(?:in|during|since|from|until|of|last|early|late|mid)[\s-]+(?P<month>{_MONTH})\b(?P<year>)",
        _resolve_named_month,
    ),
    _compile_rule(r"\b(\d{1,3}|an?) (day|week|month|year|hour)s? ago\b", _resolve_ago),
    _compile_rule(
        r"(\d{1,3}|[一二两三四五六七八九十])(天|日|周|星期|个月|年)(?:之)?前", _resolve_chinese_ago
    ),
    _compile_rule(r"\bday before yesterday\b|前天", _relative_day(2)),
    _compile_rule(r"\byesterday\b|昨天|昨日", _relative_day(1)),
    _compile_rule(r"\btoday\b|\bthis (?:morning|afternoon|evening)\b|今天|今日", _relative_day(0)),
    _compile_rule(r"\blast week\b|上(?:个)?(?:周|星期)", _calendar_week(1)),
    _compile_rule(r"\bthis week\b|本周|这(?:个)?(?:周|星期)", _calendar_week(0)),
    _compile_rule(r"\blast month\b|上个?月", _calendar_month(1)),
    _compile_rule(r"\bthis month\b|本月|这个月", _calendar_month(0)),
    _compile_rule(r"\blast year\b|去年", _calendar_year(1)),
    _compile_rule(r"\bthis year\b|今年", _calendar_year(0)),
    _compile_rule(
        r"\b(?:past|last|previous) (\d{1,3})? ?(day|week|month|year|hour)s?\b", _resolve_recent
    ),
    _compile_rule(
        r"\brecent(?:ly)?()()\b|\blately()()\b|最近()()",
        lambda f, now: TimeRange(now - 7 * DAY, now + DAY),
    ),
    _compile_rule(
        r"\bin ((?:19|20)\d\d)\b|((?:19|20)\d\d)年",
        lambda f, now: _year_range(int(f[1] or f[2]), now),
    ),
)
