"""Every runtime dependency has a licence that was looked at."""

from scripts.licences import REQUIREMENTS, licences, unknown


def test_every_runtime_dependency_has_a_known_licence() -> None:
    found = licences(REQUIREMENTS.read_text(encoding="utf-8"))
    assert len(found) > 50
    assert unknown(found) == []


def test_an_unknown_licence_is_told() -> None:
    assert unknown({"a": "MIT", "b": "AGPL-3.0-only", "c": "", "d": "Business Source"}) == ["b", "c", "d"]
