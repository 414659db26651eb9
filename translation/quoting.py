"""Whether a text quotes what comes next: in a fence of Markdown, or behind a backtick that begins a span of code."""

import re

FENCE = re.compile(r"\s*(`{3,}(?=[^`]*\Z)|~{3,})")
TICKS = re.compile(r"`+|[^`]+")
LINE = 80  # characters of a line's beginning that are kept of it


class Quoting:
    def __init__(self) -> None:
        self._fence = ""  # that is open
        self._line = ""  # what tells whether the last line is one
        self._span = 0  # backticks that a span in this line began with
        self._run = 0  # backticks at its end

    def heard(self, text: str) -> None:
        *lines, rest = text.split("\n")
        for line in lines:
            self._goes_on(line)
            self._ended()
        self._goes_on(rest)

    @property
    def quotes(self) -> bool:
        return bool(self._fence) or self._run not in (0, self._span) or FENCE.match(self._line) is not None

    def _goes_on(self, text: str) -> None:
        line = self._line + text
        self._line = line[:LINE] + ("`" if "`" in line[LINE:] else "")
        for part in TICKS.findall(text):
            if part[0] == "`":
                self._run += len(part)
            elif self._run:
                self._span = 0 if self._run == self._span else self._span or self._run
                self._run = 0

    def _ended(self) -> None:
        if not self._fence:
            self._fence = fence[1] if (fence := FENCE.match(self._line)) else ""
        elif (said := self._line.strip()).startswith(self._fence) and not said.strip(self._fence[0]):
            self._fence = ""
        self._line, self._span, self._run = "", 0, 0
