"""Whether a text quotes what comes next: in a fence of Markdown, or behind a backtick."""

import re

FENCE = re.compile(r"\s*(`{3,}(?=[^`]*\Z)|~{3,})")
LINE = 80  # characters of a line's beginning that are kept of it


class Quoting:
    def __init__(self) -> None:
        self._fence = ""  # that is open
        self._line = ""  # the last one as far as it has come, or what matters of it

    def heard(self, text: str) -> None:
        *lines, rest = (self._line + text).split("\n")
        for line in lines:
            self._ended(_kept(line))
        self._line = _kept(rest)

    def _ended(self, line: str) -> None:
        if not self._fence:
            self._fence = fence[1] if (fence := FENCE.match(line)) else ""
        elif (said := line.strip()).startswith(self._fence) and not said.strip(self._fence[0]):
            self._fence = ""

    @property
    def quotes(self) -> bool:
        return bool(self._fence) or self._line.endswith("`") or FENCE.match(self._line) is not None


def _kept(line: str) -> str:
    """What matters of a line, the same in however many pieces it comes: its beginning, its last character, and whether
    there is a backtick between them."""
    between = "`" if "`" in line[LINE:-1] else ""
    return line[:LINE] + between + line[LINE:][-1:]
