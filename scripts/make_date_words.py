"""Make the words of dates: names and relative expressions of the CLDR, and those of `date_words.toml`.

    pip install -e .[words]
    python scripts/make_date_words.py

Babel carries the CLDR and is used here only. Written are month names, weekday names, and relative days, weeks, months,
quarters and years ("yesterday", "last week", "{0} days ago"); narrow forms and short weekdays are words too often.
A phrase that two languages use for different things keeps the meaning of the first in `LOCALES`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import babel

from threefold.text.dates.words import FILE, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOCALES = """
en zh es ar hi pt bn ru ja de fr id ur it tr vi ko fa ta te mr gu kn ml pa pl uk nl th ro el hu cs sv he da fi nb nn sk
bg hr sr sr_Latn sl lt lv et ca ms az kk ka hy mk be bs ne my zh_Hant pt_PT ar_LB ar_MA ar_DZ es_MX
""".split()  # noqa: SIM905 - codes read best as words
HAND = Path(__file__).with_name("date_words.toml")
UNITS = {"day": "d", "week": "w", "month": "m", "quarter": "q", "year": "y"}
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
# Languages that say "week ago" for "a week ago".
UNCOUNTED = {"ru", "uk", "pl", "cs", "sk", "hr", "sr", "sr_Latn", "bg", "be", "bs", "mk"}


def key(phrase: str) -> str:
    """The phrase as its text would be cut, without a full stop at the end."""
    words = tokens(phrase.replace("{0}", " 1 ").replace("#", " 1 ")).words
    return " ".join(words[:-1] if len(words) > 1 and words[-1] == "." else words)


def plain(data: Any) -> Any:
    """Babel's lazy dictionaries as real ones."""
    return {k: plain(v) for k, v in data.items()} if hasattr(data, "items") else data


def split(text: str) -> list[str]:
    """The phrases of an entry of the hand table."""
    return [phrase.strip() for phrase in re.split(r"[|\n]", text) if phrase.strip()]


def months(data: dict[str, Any], short: set[str]) -> Iterator[tuple[str, str]]:
    """Names of months (`m`), and abbreviations: `a` counts beside a number, `b` between a day and a year only."""
    for form in ("format", "stand-alone"):
        for month, name in data["months"].get(form, {}).get("wide", {}).items():
            if not re.search(r"[\d月월]", name):
                yield f"m{month}", key(name)
        for month, name in data["months"].get(form, {}).get("abbreviated", {}).items():
            folded = key(name)
            clear = not re.match(r"[a-z]", folded) or folded in short or len(folded) > 4
            if not re.search(r"[\d月월]", name):
                yield f"{'a' if clear and len(folded.replace(' ', '')) >= 3 else 'b'}{month}", folded


def weekdays(code: str, data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of days of the week (`w`), and those that a relative one names (`x`: that one, or the week before's)."""
    inflected: dict[str, set[int]] = defaultdict(set)
    for form in ("format", "stand-alone"):
        for day, name in data["days"].get(form, {}).get("wide", {}).items():
            yield f"w{day}", key(name)
        if code.startswith("zh"):
            for day, name in data["days"].get(form, {}).get("abbreviated", {}).items():
                yield f"w{day}", key(name)
    for day, name in enumerate(WEEKDAYS):
        relative = data["date_fields"].get(name, {}).get("relative", {})
        phrases = {offset: key(phrase) for offset, phrase in relative.items() if offset in (-1, 0, 1)}
        for offset, phrase in phrases.items():
            yield f"W{7 * offset + day}", phrase
        common = set.intersection(*(set(p.split()) for p in phrases.values())) if len(phrases) == 3 else set()
        for word in common:  # an inflected name: "в прошлую среду"
            if len(word) >= 4:
                inflected[word].add(day)
    yield from ((f"w{min(days)}", word) for word, days in inflected.items() if len(days) == 1)


def relatives(code: str, data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Relative days and longer times (`r`), and so many of them ago (`g`)."""
    for field, unit in UNITS.items():
        for width in ("", "-short"):
            entry = data["date_fields"].get(field + width, {})
            for offset, phrase in entry.get("relative", {}).items():
                yield f"r{unit}{offset}", key(phrase)
            if unit == "q":
                continue
            for category, written in entry.get("past", {}).items():
                phrase = written.replace("({0})", "")
                count = {"one": 1, "two": 2}.get(category, 0)
                if "{0}" in phrase and not set(key(phrase).split()) & set("dwmuvhjg"):
                    yield f"g{unit}0", key(phrase)
                elif "{0}" not in phrase and count:
                    yield f"g{unit}{count}", key(phrase)
                if category == "one" and code in UNCOUNTED and not width:
                    yield f"g{unit}1", key(phrase.replace("{0}", ""))


def by_hand(hand: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The phrases of the hand table; they come first, so they win."""
    for name, entry in hand["parts"].items():
        part = ["early", "mid", "late"].index(name.partition("_")[0])
        yield from ((f"{'q' if '_' in name else 'p'}{part}", key(p)) for p in split(entry))
    for season in "0123":
        yield from ((f"s{season}", key(p)) for p in split(hand["seasons"][season]))
    for offset, name in enumerate(("last", "this", "next"), -1):
        yield from ((f"l{offset}", key(p)) for p in split(hand["modifiers"][name]))
        yield from ((f"re{offset}", key(p)) for p in split(hand["weekends"].get(name, "")))
    for kind, section in (("z", "lately"), ("g", "ago"), ("r", "relative")):
        for unit, entry in hand[section].items():
            yield from ((kind + unit + ("" if kind == "r" else "01"["#" not in p]), key(p)) for p in split(entry))
    for entry in hand["inflected"].values():
        yield from ((f"m{month}", key(p)) for month, p in enumerate(split(entry), 1))
    for month, entry in hand["short"].items():
        yield from ((f"a{month}", key(p)) for p in split(entry))
    for offset, prefixes in hand["named_days"].items():
        for prefix in split(prefixes):
            yield from ((f"W{7 * int(offset) + day}", key(prefix + name)) for day, name in enumerate("一二三四五六日"))
            yield f"W{7 * int(offset) + 6}", key(prefix + "天")
    yield from (("k0", key(p)) for p in ("tháng #", "thg #"))


def collected(hand: dict[str, Any]) -> dict[str, str]:
    """Each phrase with its code; the first one given stays."""
    skip = {key(p) for p in split(hand["skip"]["phrases"])} | set(hand["joins"]["inside"].split())
    short = {key(p) for entry in hand["short"].values() for p in split(entry)}
    codes: dict[str, str] = {}

    def add(pairs: Iterable[tuple[str, str]]) -> None:
        for code, phrase in pairs:
            known = codes.get(phrase)
            if known and phrase not in skip and known[0] in "ab" and code[0] in "ma" and known[1:] == code[1:]:
                codes[phrase] = code  # a wide name that another language abbreviates to
            elif phrase and phrase not in skip and phrase != "#" and known is None:
                codes[phrase] = code
            elif known is None and code[0] in "mb" and len(phrase) > 1:
                codes[phrase] = "b" + code[1:]  # a word, unless a day and a year are beside it
            elif known and known != code and not (known[0] in "mab" and code[0] in "mab"):
                print(f"kept {phrase!r} as {known}, not {code}")

    add(by_hand(hand))
    for locale in LOCALES:
        data = babel.Locale.parse(locale)._data  # noqa: SLF001 - the names have no public access as a whole
        for part in (months(plain_of(data, "months"), short), weekdays(locale, plain_of(data, "days", "date_fields"))):
            add(part)
        add(relatives(locale, plain_of(data, "date_fields")))
    for word in hand["weak"]:
        if codes.get(word, "").startswith("m"):
            codes[word] = "v" + codes[word][1:]
    return codes


def plain_of(data: Any, *names: str) -> dict[str, Any]:
    """Some sections of a locale as real dictionaries."""
    return {name: plain(data[name]) for name in names}


def lengths(phrases: Iterable[str]) -> dict[str, str]:
    """How many tokens the phrases have that begin with a token, longest first; tokens under their lengths."""
    sizes: dict[str, set[int]] = defaultdict(set)
    for phrase in phrases:
        first, *rest = phrase.split(" ")
        sizes[first].add(1 + len(rest))
    groups: dict[str, list[str]] = defaultdict(list)
    for first, counts in sorted(sizes.items()):
        groups[" ".join(map(str, sorted(counts, reverse=True)))].append(first)
    return {counts: " ".join(first) for counts, first in sorted(groups.items())}


def main() -> None:
    """Write the file."""
    hand = tomllib.loads(HAND.read_text("utf-8"))
    groups: dict[str, list[str]] = defaultdict(list)
    codes = collected(hand)
    for phrase, code in codes.items():
        groups[code].append(phrase)

    def words(text: str) -> str:
        return " ".join(dict.fromkeys(w for part in text.split() for w in tokens(part).words))

    sets = {
        **{name: words(hand["joins"][name]) for name in ("inside", "ranges", "between", "and")},
        **{f"years_{name}": words(hand["years"][name]) for name in ("sure", "hard", "after", "german", "turkish")},
        **{name: hand["skip"][name] for name in ("not_weekday", "not_season", "not_year", "capital")},
        "counted": " ".join(sorted({phrase.split(" ")[1] for phrase in codes if phrase.startswith("# ")})),
        "closing": words(hand["closing"]["words"]),
        "season_inside": "|".join(key(p).replace(" ", "_") for p in split(hand["seasons"]["inside"])).replace("|", " "),
        "season_alone": " ".join(key(p) for p in split(hand["seasons"]["alone"])),
    }
    data = {
        "source": f"Unicode CLDR, as carried by Babel {babel.__version__}; see NOTICE; made by make_date_words.py",
        "phrases": {code: "|".join(sorted(known)) for code, known in sorted(groups.items())},
        "lengths": lengths(codes),
        "numbers": {value: "|".join(dict.fromkeys(key(p) for p in split(e))) for value, e in hand["numbers"].items()},
        "evidence": {word: words(entry) for word, entry in hand["weak"].items()},
        "context": {word: words(entry) for word, entry in hand["context"].items()},
        "sets": sets,
    }
    FILE.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":"), indent=0) + "\n", "utf-8")
    print(FILE.stat().st_size, "bytes,", sum(map(len, groups.values())), "phrases")


if __name__ == "__main__":
    main()
