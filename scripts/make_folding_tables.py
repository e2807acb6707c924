"""Make the tables of folding: Han characters to one form, letters of other scripts that look like Latin ones.

    python -m venv ENV && ENV/bin/pip install opencc confusable-homoglyphs
    ENV/bin/python scripts/make_folding_tables.py

Only data is taken from these packages, so the program does not need them: one is 7 MB of C++, the other reads 1 MB of
JSON when it is imported. Needed again when either has learnt characters; then raise `ANALYZER` in `text/terms.py`.

`han.txt`, two lines of equally many characters, the second the form that the first is read as. OpenCC, character by
character: traditional Chinese to simplified, the forms of Taiwan and Hong Kong where they differ, and the Japanese
forms that simplified Chinese has no other use for (GB 2312 lacks them).

`lookalikes.txt`, a line for each pair: script, letter, Latin letter, `small` if they look alike as small letters,
`capital` if only as capitals. From Unicode's confusables (UTS #39): modern Greek and Cyrillic letters against a to z.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

from confusable_homoglyphs import confusables
from opencc import OpenCC

FOLDER = Path(__file__).parents[1] / "src/threefold/text/data"
HAN = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0x20000, 0x323AF))
ALPHABETS = {"greek": "αβγδεζηθικλμνξοπρστυφχψω", "cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюяѕіј"}


def han() -> dict[str, str]:
    """Every character that is read as another one, with the last in the chain."""
    characters = [chr(code) for first, last in HAN for code in range(first, last + 1)]
    simplified = OpenCC("t2s").convert
    table = {c: simplified(c) for c in characters}
    kept = {s for c, s in table.items() if c != s}
    for name in ("tw2s", "hk2s"):
        convert = OpenCC(name).convert
        table |= {c: convert(c) for c in characters if table[c] == c and c not in kept}
    kept |= {s for c, s in table.items() if c != s}
    former = OpenCC("jp2t").convert
    table |= {
        c: simplified(former(c))
        for c in characters
        if table[c] == c and c not in kept and not c.encode("gb2312", "ignore")
    }
    changed = {c: s for c, s in table.items() if c != s}
    while chained := {c: changed[s] for c, s in changed.items() if s in changed}:
        changed |= chained
    assert all(len(s) == 1 and unicodedata.normalize("NFKC", s) == s for s in changed.values())
    return changed


def lookalikes() -> list[tuple[str, str, str, str]]:
    """(script, letter, Latin letter, "small" or "capital"), both letters small ones."""
    found = []
    for script, letter in ((script, letter) for script, letters in ALPHABETS.items() for letter in letters):
        for change, case in ((str.lower, "small"), (str.upper, "capital")):
            alike = [one["c"] for one in confusables.confusables_data.get(change(letter), ())]
            latin = [c for c in alike if len(c) == 1 and c.isascii() and c.isalpha() and c == change(c)]
            if latin:
                found.append((script, letter, latin[0].lower(), case))
                break
    return found


def main() -> None:
    """Write both tables."""
    table = han()
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "han.txt").write_text("".join(table) + "\n" + "".join(table.values()) + "\n", "utf-8")
    (FOLDER / "lookalikes.txt").write_text("".join("\t".join(pair) + "\n" for pair in lookalikes()), "utf-8")
    print(f"{len(table)} Han characters, {len(lookalikes())} look-alikes")


if __name__ == "__main__":
    main()
