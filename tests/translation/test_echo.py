"""What a decoder remembers of a text, to know it when it is said again."""

import sys

from translation.providers.openai_chat_echo import LONG, Said


def test_a_text_in_any_pieces_is_known_again() -> None:
    said = Said()
    for piece in ("a" * 10, "b" * LONG * 3, "", "c"):
        said.add(piece)
    assert said.is_all("a" * 10 + "b" * LONG * 3 + "c")
    assert not said.is_all("a" * 10)


def test_long_texts_are_kept_elsewhere_only() -> None:
    said, text = Said(), "".join(["x"] * (LONG + 1))
    held = sys.getrefcount(text)
    said.add(text)
    assert sys.getrefcount(text) == held
