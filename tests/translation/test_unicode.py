"""Text that no encoder takes."""

import json

from hypothesis import given
from hypothesis import strategies as st

from translation.unicode import json_string, well_formed


@given(st.text())
def test_good_text_is_left_alone(text: str) -> None:
    assert well_formed(text) is text
    assert json.loads(json_string(text)) == text


@given(st.text(st.sampled_from("aé😀\ud83d\ude00\udc00\0"), max_size=10))
def test_any_text_can_be_encoded(text: str) -> None:
    assert json.loads(json_string(text)) == well_formed(text)
    well_formed(text).encode()


def test_halves_together_are_a_character_and_alone_a_replacement() -> None:
    assert well_formed("a\ud83d\ude00b\ud83d\0\udc00") == "a😀b\ufffd\0\ufffd"
