"""A bounded line diff. Pure."""

from difflib import SequenceMatcher
from itertools import islice

from msgspec import Struct

from conversations.wording import harmless

LINES = 2_000  # compared on each side, after what both begin and end with
AROUND = 3  # lines of context
LINE = 400  # characters of a line
SHOWN = 3_000  # rows of a diff


class Row(Struct, frozen=True):
    kind: str  # same, added, removed, gap
    text: str


class Diff(Struct, frozen=True):
    rows: tuple[Row, ...]
    added: int
    removed: int
    cut: bool = False

    @property
    def same(self) -> bool:
        return not (self.added or self.removed)


def diff(before: bytes, after: bytes) -> Diff:
    one, other = _lines(before), _lines(after)
    head = _common(one, other)
    tail = _common(one[head:][::-1], other[head:][::-1])
    middle, changed = one[head : len(one) - tail], other[head : len(other) - tail]
    cut = len(middle) > LINES or len(changed) > LINES
    rows, added, removed = _compare(middle[:LINES], changed[:LINES])
    if not added and not removed and not cut:
        return Diff((), 0, 0)
    rows = [*_same(one[max(0, head - AROUND) : head]), *rows, *_same(one[len(one) - tail :][:AROUND])]
    if head > AROUND:
        rows.insert(0, Row("gap", f"{head - AROUND:,} lines the same"))
    return Diff(tuple(islice(rows, SHOWN)), added, removed, cut or len(rows) > SHOWN)


def _compare(one: list[str], other: list[str]) -> tuple[list[Row], int, int]:
    rows: list[Row] = []
    added = removed = 0
    for verb, a, b, c, d in SequenceMatcher(None, one, other).get_opcodes():
        if verb == "equal":
            rows += _shortened(one[a:b])
            continue
        rows += [Row("removed", _text(line)) for line in one[a:b]]
        rows += [Row("added", _text(line)) for line in other[c:d]]
        removed, added = removed + b - a, added + d - c
    return rows, added, removed


def _shortened(lines: list[str]) -> list[Row]:
    if len(lines) <= 2 * AROUND + 1:
        return _same(lines)
    gap = Row("gap", f"{len(lines) - 2 * AROUND:,} lines the same")
    return [*_same(lines[:AROUND]), gap, *_same(lines[-AROUND:])]


def _same(lines: list[str]) -> list[Row]:
    return [Row("same", _text(line)) for line in lines]


def _text(line: str) -> str:
    return harmless(line[:LINE]) + (" …" if len(line) > LINE else "")


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "backslashreplace").split("\n")


def _common(one: list[str], other: list[str]) -> int:
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length
