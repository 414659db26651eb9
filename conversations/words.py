"""From stored content to the words that a search knows, and from what an operator types to phrases of them. Pure.

Both databases get the same words, so that both find the same: letters and digits, folded; a name such as
`test_half_cents` is three words that follow each other, and so is every sign of Chinese, Japanese and Korean.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

LIMIT = 60_000  # characters of one turn: what is beyond stands in no index
HEAD = 45_000  # of them from its beginning
PHRASES = 16
WORD = 60  # characters: a longer one is data
_WORDS = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]|[^\W_\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_ASKED = re.compile(r'"([^"]*)"?|(\S+)')
# Neither read by anybody nor worth finding.
_DATA = frozenset({"data", "signature", "type", "media_type", "encrypted_content", "id", "tool_use_id"})


class Phrase(Struct, frozen=True):
    """Words that follow each other; the last may be the beginning of one."""

    words: tuple[str, ...]
    prefix: bool = False


def words(text: str) -> str:
    return " ".join(word for word in _WORDS.findall(text.casefold()) if len(word) <= WORD)


def document(contents: Iterable[bytes], *more: str) -> str:
    """The words of a turn: all that its messages say."""
    text = "\n".join((*(said for content in contents for said in texts(content)), *more))
    if len(text) > LIMIT:
        text = f"{text[:HEAD]}\n{text[HEAD - LIMIT :]}"
    return words(text)


def texts(content: bytes) -> Iterator[str]:
    """What a message's blocks say, whatever their kind. Below full storage they say nothing."""
    try:
        yield from _said(msgspec.json.decode(content))
    except msgspec.DecodeError:
        return


def _said(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _said(item)
        case dict():
            for name, item in value.items():
                if name not in _DATA:
                    yield from _said(item)


def phrases(asked: str) -> tuple[Phrase, ...]:
    """Words in quotes stay together; a * at the end stands for any ending."""
    found = []
    for quoted, plain in _ASKED.findall(asked)[:PHRASES]:
        text = quoted or plain
        if some := tuple(words(text).split()):
            found.append(Phrase(some, prefix=text.endswith("*")))
    return tuple(found)
