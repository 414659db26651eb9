"""Names against the shell patterns of profiles and prices. The same few are asked for in every request."""

from fnmatch import fnmatchcase
from functools import lru_cache


@lru_cache(maxsize=4096)
def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns, which are in lower case, fits the name in any case."""
    lowered = name.lower()
    return any(fnmatchcase(lowered, pattern) for pattern in patterns)
