"""Tool names toward upstreams that take fewer of them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from translation.names import ToolNames

LONG = "mcp__a_server_with_a_very_long_name__" + "read_everything_there_is_" * 3


def test_a_legal_name_is_kept() -> None:
    names = ToolNames(["Read", "get-weather_2"])
    assert names.upstream("Read") == "Read"
    assert names.changed == ()


def test_a_long_name_gets_the_same_alias_in_every_request() -> None:
    alias = ToolNames([LONG]).upstream(LONG)
    assert len(alias) == 64
    assert re.fullmatch(r"[A-Za-z0-9_-]{55}_[0-9a-f]{8}", alias)
    assert ToolNames(["Read", LONG]).upstream(LONG) == alias


def test_names_that_start_alike_stay_distinct_and_can_be_reversed() -> None:
    names = ToolNames([LONG + "1", LONG + "2"])
    assert dict(names.changed) == {names.upstream(LONG + "1"): LONG + "1", names.upstream(LONG + "2"): LONG + "2"}
    assert len(dict(names.changed)) == 2


def test_names_that_differ_in_illegal_characters_only_stay_distinct() -> None:
    names = ToolNames(["a.b", "a/b", "a b", "a_b"])
    assert len({names.upstream(name) for name in ("a.b", "a/b", "a b", "a_b")}) == 4
    assert names.upstream("a_b") == "a_b"


def test_an_alias_gives_way_to_a_tool_of_that_very_name() -> None:
    alias = ToolNames(["a.b"]).upstream("a.b")
    names = ToolNames(["a.b", alias])
    assert names.upstream(alias) == alias
    assert names.upstream("a.b") not in (alias, "a.b")


def test_a_name_only_seen_in_the_history_gets_an_alias_too() -> None:
    names = ToolNames([])
    assert dict(names.changed) == {}
    assert {names.upstream("x y"): "x y"} == dict(names.changed)


def test_a_name_may_have_to_begin_with_a_letter() -> None:
    names = ToolNames(["1st", "_ok", "", "-x"], letter_first=True)
    assert names.upstream("_ok") == "_ok"
    assert names.upstream("1st").startswith("t_1st_")
    assert names.upstream("").startswith("t__")
    assert names.upstream("-x").startswith("t_-x_")


@given(st.lists(st.text(max_size=90), max_size=8))
def test_every_alias_is_legal_distinct_and_reversible(given_names: list[str]) -> None:
    names = ToolNames(given_names)
    aliases = [names.upstream(name) for name in dict.fromkeys(given_names)]
    assert len(set(aliases)) == len(aliases)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", alias) for alias in aliases)
    back = dict(names.changed)
    assert [back.get(alias, alias) for alias in aliases] == list(dict.fromkeys(given_names))
