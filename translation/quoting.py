"""Whether a text quotes what comes next: directly behind a backtick that begins a span of code in its line.

A fence tells nothing: there are models that put a call which they mean into one, and whose fences do not pair.
"""

import re

TICKS = re.compile(r"`+|[^`]+")


class Quoting:
    def __init__(self) -> None:
        self._span = 0  # backticks that a span in this line began with
        self._run = 0  # backticks at its end

    @property
    def quotes(self) -> bool:
        return self._run not in (0, self._span)

    def heard(self, text: str) -> None:
        _, newline, line = text.rpartition("\n")
        if newline:
            self._span = self._run = 0
        for part in TICKS.findall(line):
            if part[0] == "`":
                self._run += len(part)
            elif self._run:
                self._span = 0 if self._run == self._span else self._span or self._run
                self._run = 0
