"""Lists of models, as upstreams give them."""

import msgspec
import pytest

from translation.catalog import model_names


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ({"object": "list", "data": [{"id": "gpt-5"}, {"id": "gpt-5"}, {"id": "o3"}]}, ("gpt-5", "o3")),
        ({"data": [{"type": "model", "id": "claude-opus-4-5"}], "has_more": False}, ("claude-opus-4-5",)),
        ({"models": [{"name": "models/gemini-3-pro"}]}, ("gemini-3-pro",)),
        ([{"id": "local"}], ("local",)),
        ({"data": [{"id": 5}, {"id": ""}, "odd", {"id": "two\nlines"}]}, ()),
        ({"error": "no"}, ()),
        ("text", ()),
    ],
)
def test_every_shape_is_understood(value: object, names: tuple[str, ...]) -> None:
    assert model_names(msgspec.json.encode(value)) == names


def test_what_is_no_json_has_no_models() -> None:
    assert model_names(b"<html>") == ()
