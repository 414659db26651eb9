"""docs/policies.md says what the code does."""

import re
from pathlib import Path

from translation import policies
from translation.policies import ALWAYS, PROFILES, RULES, SWITCHES
from translation.policies.policy import GUARDRAIL, READ_CUES, READ_ONLY_TOOLS, WRITE_CUES

DOCUMENT = (Path(policies.__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
ROW = re.compile(r"\| (\S+) \| `(\w+)` \| (on|off) \| (on|off) \| ")


def number(rule: policies.Rule) -> str:
    return (rule.__doc__ or "").partition(":")[0]


def test_every_rule_is_listed_with_its_number_and_profiles_in_order() -> None:
    onoff = ("off", "on")
    assert ROW.findall(DOCUMENT) == [
        (number(rule), rule.__name__, *(onoff[rule in PROFILES[name]] for name in ("agentic", "conservative")))
        for rule in RULES
    ]


def test_every_number_of_the_seed_has_its_place() -> None:
    listed = set(re.findall(r"^\| (R\d+) ", DOCUMENT, re.MULTILINE))
    assert listed == {f"R{n}" for n in range(1, 11)}


def test_profiles_keep_the_order_of_the_rules() -> None:
    for profile in PROFILES.values():
        assert list(profile) == [rule for rule in RULES if rule in profile]


def test_every_rule_but_the_billing_header_has_a_switch() -> None:
    assert set(SWITCHES) == {rule.__name__ for rule in RULES} - {rule.__name__ for rule in ALWAYS}


def test_the_texts_are_the_defaults() -> None:
    assert f": {GUARDRAIL}\n" in DOCUMENT
    for words in (READ_CUES, WRITE_CUES, READ_ONLY_TOOLS):
        assert f": {', '.join(words)}\n" in DOCUMENT
