"""The lines of a request's head, as servers tell them: names in lower case."""

from collections.abc import Iterable

LENGTH = b"content-length"
KNOWN, LARGEST = 1024, 8192  # heads that are remembered, and bytes of the largest of them

Lines = tuple[tuple[bytes, bytes], ...]


def split(headers: Iterable[tuple[bytes, bytes]]) -> tuple[Lines, bytes]:
    """The lines but for the length of the body, and what that is said to be."""
    lines, length = [], b""
    for line in headers:
        if line[0] == LENGTH:
            length = line[1]
        else:
            lines.append(line)
    return tuple(lines), length
