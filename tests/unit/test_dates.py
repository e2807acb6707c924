"""Dates that texts name, in many languages; what is no date; how near a time is to a period."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import threefold.text.dates
from threefold.text.dates import Period, nearness, nearness_of, periods
from threefold.text.dates.words import FILE

NOW = datetime(2025, 8, 20, 12, tzinfo=UTC)  # a Wednesday


def said(text: str, now: datetime = NOW) -> list[str]:
    """The periods as text: first and last day, `y` for each year, `w` for each week."""
    return [_written(period) for period in periods(text, now)]


def _written(period: Period) -> str:
    last = period.until - timedelta(days=1)
    days = f"{period.since:%Y-%m-%d}" + (f"/{last:%Y-%m-%d}" if last > period.since else "")
    return days + (" y" if period.yearly else "") + (" w" if period.weekly else "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What happened on 2025-08-03?", "2025-08-03"),
        ("am 03.08.2025 um zehn", "2025-08-03"),
        ("since 2025-08-03T10:00:00Z", "2025-08-03"),
        ("12/25/2024", "2024-12-25"),
        ("25/12/2024", "2024-12-25"),
        ("before the 7/22 trip", "2025-07-22 y"),
        ("am 3.8. war", "2025-08-03 y"),
        ("in 2025-01", "2025-01-01/2025-01-31"),
        ("the 2010-11 season", "2010-01-01/2011-12-31"),
        ("Q2 2025", "2025-04-01/2025-06-30"),
        ("On August 3rd, due to weather", "2025-08-03 y"),
        ("3 August 2025", "2025-08-03"),
        ("August 3rd, 2025", "2025-08-03"),
        ("on December 1,2023 taken", "2023-12-01"),
        ("the 3rd of August", "2025-08-03 y"),
        ("8月3日", "2025-08-03 y"),
        ("2025年1月", "2025-01-01/2025-01-31"),
        ("４月", "2025-04-01/2025-04-30 y"),
        ("十一月二十日", "2024-11-20 y"),
        ("二〇二四年十二月", "2024-12-01/2024-12-31"),
        ("2025년 8월 3일", "2025-08-03"),
        ("3 августа", "2025-08-03 y"),
        ("3 de agosto", "2025-08-03 y"),
        ("٣ أغسطس", "2025-08-03 y"),
        ("3 अगस्त", "2025-08-03 y"),
        ("3 ส.ค. 2568", "2025-08-03"),
        ("ngày 3 tháng 8 năm 2025", "2025-08-03"),
        ("2025. augusztus 3", "2025-08-03"),
        ("3 Mayıs 2024'te", "2024-05-03"),
        ("στις 3 Αυγούστου 2025", "2025-08-03"),
        ("1er janvier 2024", "2024-01-01"),
        ("17 ago 2024", "2024-08-17"),
        ("17\u200f/01\u200f/2024", "2024-01-17"),
        ("2024. 1. 17.", "2024-01-17"),
        ("في 12 أيار/مايو 2024", "2024-05-12"),
        ("17 جنوری، 2024", "2024-01-17"),
        ("17 มกราคม ค.ศ. 2024", "2024-01-17"),
    ],
)
def test_days(text: str, expected: str) -> None:
    assert said(text) == [expected]


def test_a_day_written_in_two_orders_is_both() -> None:
    assert said("05/06/2024") == ["2024-05-06", "2024-06-05"]
    assert said("05.06.2024") == ["2024-06-05"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in April", "2025-04-01/2025-04-30 y"),
        ("in September", "2024-09-01/2024-09-30 y"),
        ("January 2025", "2025-01-01/2025-01-31"),
        ("in mid-January", "2025-01-10/2025-01-22 y"),
        ("early July", "2025-07-01/2025-07-11 y"),
        ("the end of May", "2025-05-19/2025-05-31 y"),
        ("in May, where did he go", "2025-05-01/2025-05-31 y"),
        ("Ende Mai letzten Jahres", "2024-05-19/2024-05-31"),
        ("Anfang März", "2025-03-01/2025-03-11 y"),
        ("fin mai 2024", "2024-05-19/2024-05-31"),
        ("a mediados de junio", "2025-06-10/2025-06-21 y"),
        ("в начале июля", "2025-07-01/2025-07-11 y"),
        ("1月中旬", "2025-01-10/2025-01-22 y"),
        ("2025年6月初", "2025-06-01/2025-06-11"),
        ("3월 초", "2025-03-01/2025-03-11 y"),
        ("đầu tháng 3 năm 2025", "2025-03-01/2025-03-11"),
        ("в августе 2024 года", "2024-08-01/2024-08-31"),
        ("w lipcu 2024 roku", "2024-07-01/2024-07-31"),
        ("toukokuussa 2024", "2024-05-01/2024-05-31"),
        ("באוגוסט", "2025-08-01/2025-08-31 y"),
        ("في أغسطس 2024", "2024-08-01/2024-08-31"),
        ("สิงหาคม 2567", "2024-08-01/2024-08-31"),
        ("last August", "2024-08-01/2024-08-31"),
        ("in August last year", "2024-08-01/2024-08-31"),
        ("в августе прошлого года", "2024-08-01/2024-08-31"),
        ("去年8月", "2024-08-01/2024-08-31"),
        ("in 2023", "2023-01-01/2023-12-31"),
        ("Was geschah 1985 in Bonn, und wie war der Sommer?", "1985-01-01/1985-12-31"),
        ("в 2023 году", "2023-01-01/2023-12-31"),
        ("2012'de ne oldu", "2012-01-01/2012-12-31"),
        ("ปี 2015", "2015-01-01/2015-12-31"),
        ("the beginning of 2024", "2024-01-01/2024-05-11"),
        ("during the 1990s", "1990-01-01/1999-12-31"),
        ("last spring", "2025-03-01/2025-05-31"),
        ("in the summer of 2024", "2024-06-01/2024-08-31"),
        ("in the winter of 2024", "2023-12-01/2025-02-28"),
        ("during the summer", "2025-06-01/2025-08-31 y"),
        ("letzten Sommer", "2024-06-01/2024-08-31"),
        ("l'été dernier", "2024-06-01/2024-08-31"),
        ("прошлым летом", "2024-06-01/2024-08-31"),
        ("去年夏天", "2024-06-01/2024-08-31"),
    ],
)
def test_months_years_seasons(text: str, expected: str) -> None:
    assert said(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yesterday's meeting", "2025-08-19"),
        ("What did we do today?", "2025-08-20"),
        ("last week", "2025-08-11/2025-08-17"),
        ("last month", "2025-07-01/2025-07-31"),
        ("3 days ago", "2025-08-17"),
        ("two weeks ago", "2025-08-03/2025-08-09"),
        ("a couple of weeks ago", "2025-08-03/2025-08-09"),
        ("a few weeks ago", "2025-07-09/2025-08-13"),
        ("in the last two months", "2025-06-20/2025-08-20"),
        ("the past weekend", "2025-08-16/2025-08-17"),
        ("vor drei Wochen", "2025-07-27/2025-08-02"),
        ("hace dos meses", "2025-06-05/2025-07-05"),
        ("il y a trois jours", "2025-08-17"),
        ("Qu'est-ce que j'ai fait hier ?", "2025-08-19"),
        ("la settimana scorsa", "2025-08-11/2025-08-17"),
        ("na semana passada", "2025-08-11/2025-08-17"),
        ("drie dagen geleden", "2025-08-17"),
        ("förra veckan", "2025-08-11/2025-08-17"),
        ("w zeszłym tygodniu", "2025-08-11/2025-08-17"),
        ("viime viikolla", "2025-08-11/2025-08-17"),
        ("geçen hafta", "2025-08-11/2025-08-17"),
        ("на прошлой неделе", "2025-08-11/2025-08-17"),
        ("три дня назад", "2025-08-17"),
        ("неделю назад", "2025-08-10/2025-08-16"),
        ("в прошлую среду", "2025-08-13"),
        ("上周", "2025-08-11/2025-08-17"),
        ("去年", "2024-01-01/2024-12-31"),
        ("前天", "2025-08-18"),
        ("三天前", "2025-08-17"),
        ("上周三", "2025-08-13"),
        ("先週", "2025-08-11/2025-08-17"),
        ("3日前に", "2025-08-17"),
        ("지난주에", "2025-08-11/2025-08-17"),
        ("3주 전", "2025-07-27/2025-08-02"),
        ("hôm qua", "2025-08-19"),
        ("minggu lalu", "2025-08-11/2025-08-17"),
        ("3 दिन पहले", "2025-08-17"),
        ("เมื่อวานนี้", "2025-08-19"),
        ("قبل ثلاثة أيام", "2025-08-17"),
        ("الأسبوع الماضي", "2025-08-11/2025-08-17"),
        ("לפני שבועיים", "2025-08-03/2025-08-09"),
        ("last Friday", "2025-08-15"),
        ("on Monday", "2025-08-18 w"),
        ("am Montag", "2025-08-18 w"),
    ],
)
def test_relative_times(text: str, expected: str) -> None:
    assert said(text) == [expected]


def test_last_tuesday_may_be_of_this_week_or_the_week_before() -> None:
    assert said("last Tuesday") == ["2025-08-12", "2025-08-19"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("between May 3 and May 10", ["2025-05-03/2025-05-10 y"]),
        ("between May 3 and 10, 2024", ["2024-05-03/2024-05-10"]),
        ("from 3 to 10 May", ["2025-05-03/2025-05-10 y"]),
        ("3.–10. Mai", ["2025-05-03/2025-05-10 y"]),
        ("from November 2024 to January 2025", ["2024-11-01/2025-01-31"]),
        ("from November to February 2025", ["2024-11-01/2025-02-28"]),
        ("between 2019 and 2021", ["2019-01-01/2021-12-31"]),
        ("1月9日至11日", ["2025-01-09/2025-01-11 y"]),
        ("从2000年到2005年", ["2000-01-01/2005-12-31"]),
        ("on July 6th and July 22nd", ["2025-07-06 y", "2025-07-22 y"]),
        ("on Monday, May 5", ["2025-05-05 y"]),
    ],
)
def test_ranges(text: str, expected: list[str]) -> None:
    assert said(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "May I ask what I may do?",
        "They march on Washington",
        "The sun is out, he sat on a mon",
        "What did April say to June?",
        "August Strindberg wrote it",
        "Mai mult de zece",
        "non ti ho mai visto",
        "Ich bin hier morgen früh",
        "el mar y la sal",
        "I want mayo on 3 burgers",
        "3 out of 5, set 3 of 4, 3 ago",
        "iPhone 2020 costs 2000 dollars",
        "in 2000 meters",
        "build-2024-alpha foo_2023 v2023 #2024",
        "call 555-2023 or 1,984 or 3.2025 or 12,023",
        "commit 20250803",
        "open report-2024-05-03-final.pdf",
        "10:30 on 24/7, 3/4 cup",
        "spring roll and the fall of Rome",
        "Black Friday",
        "How long ago was it?",
        "ISO date 2025-13-45, 2025-02-30, 30.02.2025",
        "February 30",
        "过去2027年",
        "0000年13月99日",
        "in the year 0, 9999999999 days ago",
        "一周日程",
        "3个月",
        "Tesla died on 7 January 1943, in the summer of 1521",
        "Im Fall der Fälle, in diesem Fall",
        "in the last week of February 1964",
        "Vad var det var 2015?",
        "अमेज़न बेसिन कितने वर्ग किलोमीटर मे?",
        "Tên của thế mới nhất là gì?",
        "¿Por qué se necesita la segunda línea?",
        "언어제작",
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert said(text) == []


def test_a_day_of_leap_years_is_looked_for_in_one() -> None:
    assert said("on February 29") == ["2024-02-29 y"]


def test_now_is_taken_in_its_own_zone() -> None:
    there = datetime(2025, 8, 20, 1, tzinfo=timezone(timedelta(hours=9)))
    assert said("yesterday", there) == ["2025-08-19"]


_WORDS = """
may 3 30 31 2024 last week ago between and - to from . , 上周 年 月 日 3月 2月30日 days monday early end of 0 00 Q1
summer 1990 s года în de hace 00000000000000000000 2100 12/31/2100 a the past few 9999 ปี 2643 jan
"""
_words = st.sampled_from(_WORDS.split())
_zones = st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))])


@settings(max_examples=300, deadline=None)
@given(
    text=st.one_of(st.text(), st.lists(_words, max_size=12).map(" ".join), st.lists(_words, max_size=12).map("".join)),
    now=st.datetimes(timezones=st.one_of(st.none(), _zones)),
)
@example("on February 29 last year, next month, 3 years ago, in the last 90 years", datetime(1, 1, 1))  # noqa: DTZ001
@example("from May 3, 2024 to February 29, next summer, this winter", datetime(9999, 12, 31, 23, 59))  # noqa: DTZ001
def test_no_text_and_no_time_is_too_much(text: str, now: datetime) -> None:
    for period in periods(text, now):
        assert period.since < period.until
        assert period.since.tzinfo is period.until.tzinfo is UTC
        assert 0.0 <= nearness([period], now) <= 1.0
        assert nearness([period], period.since) == 1.0
        assert nearness([period], period.since + (period.until - period.since) / 2) == 1.0


def _days(since: date, count: int, **more: bool) -> Period:
    start = datetime(since.year, since.month, since.day, tzinfo=UTC)
    return Period(start, start + timedelta(days=count), **more)


def test_nearness_falls_with_the_distance_in_lengths_of_the_period() -> None:
    month, day = _days(date(2025, 4, 1), 30), _days(date(2025, 4, 15), 1)
    after = [month.until + timedelta(days=n) for n in (0.9, 3, 8, 20, 60)]
    values = [nearness([month], at) for at in after]
    assert values[0] == 1.0
    assert values == sorted(values, reverse=True)
    assert values[-1] < 1e-6
    assert nearness([month], after[2]) > nearness([day], day.until + timedelta(days=8))
    assert nearness([month, day], after[0]) == 1.0
    assert nearness([], NOW) == 0.0


def test_nearness_of_what_comes_again() -> None:
    yearly, weekly = _days(date(2025, 12, 20), 20, yearly=True), _days(date(2025, 8, 18), 1, weekly=True)
    assert nearness([yearly], datetime(2019, 12, 25, tzinfo=UTC)) == 1.0
    assert nearness([yearly], datetime(2031, 1, 3, tzinfo=UTC)) == 1.0
    assert nearness([yearly], datetime(2031, 7, 3, tzinfo=UTC)) < 0.01
    assert nearness([weekly], datetime(2020, 1, 6, 9, tzinfo=UTC)) == 1.0
    assert nearness([weekly], datetime(2020, 1, 9, 9, tzinfo=UTC)) < 0.5


@given(st.lists(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)), max_size=5))  # noqa: DTZ001
def test_many_times_are_as_near_as_each(ats: list[datetime]) -> None:
    named = periods("in April 2024, last week, on Monday, in December", NOW)
    seconds = np.array([at.replace(tzinfo=UTC).timestamp() for at in ats])
    together = nearness_of(named, seconds)
    assert together.tolist() == pytest.approx([nearness(named, at) for at in ats])


def test_the_words_come_with_their_licence_and_stay_small() -> None:
    folder = Path(threefold.text.dates.__file__).parent
    assert "UNICODE LICENSE V3" in (folder / "LICENSE.unicode").read_text("utf-8")
    assert "Unicode" in (folder / "NOTICE").read_text("utf-8")
    assert FILE.stat().st_size < 150_000
