"""Tool names that an upstream takes: kept where they are legal, else a deterministic alias that can be reversed.

An alias is made from the name alone (its legal characters and eight hex digits of its hash), so the same tool has the
same alias in every request, in `tools`, in the tool choice and in the history.
"""

import re
from collections.abc import Iterable, Set
from functools import lru_cache
from hashlib import sha256
from itertools import compress, repeat

ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
LEGAL = re.compile(r"[A-Za-z0-9_-]+")
HARMONY = re.compile(r"<\|.*?(?:\|>|$)|\s")  # the marks of gpt-oss's format
LETTER_FIRST = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def is_name(text: str) -> bool:
    """Whether a client could send it back: a name or an id that is not empty, of printable characters."""
    return bool(text) and text.isprintable()


def meant(name: str, offered: Set[str]) -> str:
    """The one offered tool that a name means which has pieces of gpt-oss's format in it, as servers leave them there:
    `functions.f`, `f<|channel|>commentary`, `assistant<|channel|>commentary to=functions.f`. "" where it is not one.
    """
    found = {piece.removeprefix("to=").removeprefix("functions.") for piece in HARMONY.split(name)} & offered
    return found.pop() if len(found) == 1 else ""


class ToolNames:
    """The names of one request. `letter_first` is for upstreams that want a letter or underscore at the start."""

    def __init__(self, names: Iterable[str], limit: int = 64, *, letter_first: bool = False) -> None:
        self._limit = limit
        self._form = LETTER_FIRST if letter_first else LEGAL
        self._upstream: dict[str, str] = {}
        self._taken: set[str] = set()
        self.changed: tuple[tuple[str, str], ...] = ()  # (upstream name, client name) of those whose name is not kept
        if given := tuple(names):
            self._offer(given)

    def _offer(self, given: tuple[str, ...]) -> None:
        """Legal names first: an alias gives way to a tool that really has that name."""
        legal = tuple(compress(given, map(_is_legal, given, repeat(self._limit), repeat(self._form))))
        self._upstream.update(zip(legal, legal, strict=True))
        self._taken.update(legal)
        if len(legal) < len(given):
            for name in given:
                self.upstream(name)

    def upstream(self, name: str) -> str:
        known = self._upstream.get(name)
        if known is not None:
            return known
        if self._kept(name):
            return name
        alias = self._upstream[name] = self._alias(name)
        self._taken.add(alias)
        self.changed += ((alias, name),)
        return alias

    def _kept(self, name: str) -> bool:
        """Whether it is legal, and so its own alias."""
        if not _is_legal(name, self._limit, self._form):
            return False
        self._upstream[name] = name
        self._taken.add(name)
        return True

    def _alias(self, name: str) -> str:
        clean = ILLEGAL.sub("_", name)
        if not self._form.fullmatch(clean):
            clean = f"t_{clean}"
        clean = clean[: self._limit - 9]
        salt = ""
        while True:
            digest = sha256((name + salt).encode("utf-8", "surrogatepass")).hexdigest()[:8]
            alias = f"{clean}_{digest}"
            if alias not in self._taken:
                return alias
            salt += "+"


@lru_cache(maxsize=4096)  # clients send the same names with every turn
def _is_legal(name: str, limit: int, form: re.Pattern[str]) -> bool:
    return len(name) <= limit and form.fullmatch(name) is not None
