"""Figures, the colours of states and foreign text, as an operator reads them. Pure."""

import datetime as dt
import re
from decimal import Decimal

TURN_COLOURS = {"running": "info", "complete": "success", "aborted": "warning", "error": "danger", "replay": "info"}
TOOL_COLOURS = {
    "streaming": "info",
    "pending": "warning",
    "answered": "success",
    "failed": "danger",
    "truncated": "danger",
    "repaired": "warning",
    "orphaned": "warning",
}
NONE = "–"
# What the sidebar calls the rows of a table, where a table has another name.
NAMES = {
    "tool mapping": "tool call",
    "tool execution": "hosted run",
    "tool secret": "secret",
    "user": "operator",
    "log entry": "act of an operator",
    "rest": "resting upstream",
    "tool mappings": "tool calls",
    "tool executions": "hosted runs",
    "tool secrets": "secrets",
    "users": "operators",
    "log entries": "acts of operators",
    "rests": "resting upstreams",
    "Administration": "Access",
    "Authentication and Authorization": "Access",
}

# Joiners shape what stands around them: letters of Arabic and Indic scripts, and the pictures of one emoji.
_LETTERS = "\u0600-\u060b\u060d-\u061a\u061d-\u08ff\u0900-\u0dff\ufb50-\ufdff\ufe70-\ufefc"
_PICTURES = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
    f"|(?<![{_LETTERS}])\u200c|\u200c(?![{_LETTERS}])"
    f"|(?<![{_LETTERS}{_PICTURES}])\u200d|\u200d(?![{_LETTERS}{_PICTURES}])"
)


def milliseconds(value: float) -> str:
    if value <= 0:
        return NONE
    if value < 1:
        return "<1 ms"
    if value < 1_000:
        return f"{value:.0f} ms"
    if value < 100_000:
        return f"{value / 1_000:.1f} s"
    return seconds(value / 1_000)


def seconds(value: float) -> str:
    whole = int(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s" if whole < 600 and whole % 60 else f"{whole // 60} min"
    if whole < 86_400:
        return f"{whole // 3_600} h {whole % 3_600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3_600} h"


def count(value: int) -> str:
    """12,345 up to a hundred thousand, then 123k, 4.6M."""
    if value < 100_000:
        return f"{value:,}"
    if value < 1_000_000:
        return f"{value // 1_000}k"
    return f"{value / 1_000_000:.1f}M"


def many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def tokens(value: int, *, estimated: bool) -> str:
    return f"~{count(value)}" if estimated else count(value)


def size(value: int) -> str:
    if value < 1_000:
        return f"{value} B"
    if value < 1_000_000:
        return f"{value / 1_000:.1f} kB"
    return f"{value / 1_000_000:.1f} MB"


def money(micros: int) -> str:
    if micros == 0:
        return NONE
    dollars = micros / 1_000_000
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"


def dollars(value: Decimal) -> str:
    """A price: to the cent, and further only where it goes further."""
    exact = f"{value:,.4f}".rstrip("0")
    whole, _, rest = exact.partition(".")
    return f"${whole}.{rest:0<2}"


def ago(moment: dt.datetime, now: dt.datetime) -> str:
    passed = (now - moment).total_seconds()
    if passed < 2:
        return "now"
    return f"{_coarse(passed)} ago"


def _coarse(passed: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if passed >= length:
            return f"{int(passed // length)} {unit}"
    return f"{int(passed)} s"


def harmless(text: str) -> str:
    """Every character that cannot be seen, nor changes what can be, is shown by its name."""
    return _INVISIBLE.sub(_name, text)


def _name(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number < 0x20:
        return chr(0x2400 + number)  # ␀ … ␛: the pictures of the control characters
    return "␡" if number == 0x7F else f"⟨U+{number:04X}⟩"
