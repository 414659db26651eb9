"""R2, the guardrail and the guidance in the system prompt."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.translation.policies.requests import AGENTIC, CONSERVATIVE, asked, fired, switched, under, user
from translation.policies import Policy
from translation.policies.policy import GUARDRAIL
from translation.policies.system import without_reminders
from translation.values import Text

BILLING = "x-anthropic-billing-header: cc_version=2.1.325; cch=a5145;"
BOTH = pytest.mark.parametrize("policy", [AGENTIC, CONSERVATIVE], ids=["agentic", "conservative"])


@BOTH
def test_the_billing_header_is_left_out(policy: Policy) -> None:
    governed, notes = under(policy, asked(user("hi"), system=(BILLING, "You are Claude Code.")))
    assert governed.system[0] == Text("You are Claude Code.")
    assert governed.raw_system == b""
    assert fired(notes)[0] == "R2"
    assert notes[0].kind == "policy"


def test_a_billing_header_in_a_longer_text_takes_only_its_line_along() -> None:
    governed, _ = under(AGENTIC, asked(user("hi"), system=(f"{BILLING}\nBe brief.",)))
    assert governed.system == (Text("Be brief."),)


def test_the_billing_header_cannot_be_kept() -> None:
    governed, _ = under(switched(AGENTIC, strip_billing_header=False), asked(user("hi"), system=(BILLING,)))
    assert governed.system == ()


@BOTH
def test_reminders_in_the_system_prompt_are_left_out(policy: Policy) -> None:
    text = "Be brief.\n<system-reminder>\nuse todos\n</system-reminder>\nBe kind."
    governed, notes = under(
        policy, asked(user("hi"), system=(text, "<system-reminder>all of it</system-reminder>", "Stay."))
    )
    assert [block.text for block in governed.system][:2] == ["Be brief.\nBe kind.", "Stay."]
    assert fired(notes)[0] == "R2"


def test_reminders_in_the_system_prompt_stay_when_the_rule_is_off() -> None:
    request = asked(user("hi"), system=("<system-reminder>x</system-reminder>",))
    assert under(switched(AGENTIC, strip_system_reminders=False), request) == (request, ())


def test_conservative_ends_the_system_prompt_with_the_guardrail() -> None:
    governed, notes = under(CONSERVATIVE, asked(user("hi"), system=("Be brief.",)))
    assert governed.system == (Text("Be brief."), Text(GUARDRAIL))
    assert fired(notes) == ["R10"]


def test_a_route_has_its_own_guardrail_and_guidance() -> None:
    policy = replace(CONSERVATIVE, guardrail="Once is enough.", guidance="Prefer Glob.")
    governed, notes = under(policy, asked(user("hi")))
    assert governed.system == (Text("Once is enough."), Text("Prefer Glob."))
    assert fired(notes) == ["R10", "Guidance"]


@BOTH
def test_nothing_is_changed_toward_anthropic(policy: Policy) -> None:
    request = asked(user("hi"), system=(BILLING,))
    governed, notes = under(replace(policy, guidance="Prefer Glob."), request, "anthropic")
    assert governed is request
    assert notes == ()


@given(st.lists(st.sampled_from(["<system-reminder>", "</system-reminder>", " ", "\n", "a", "b"]), max_size=12))
def test_each_reminder_goes_with_the_space_around_it(pieces: list[str]) -> None:
    text = "".join(pieces)
    tag = "<system-reminder>"
    begun = rf"(?:(?:(?<![^\n])|(?<=</system-reminder>)){tag}|{tag}(?!(?:(?!</system-reminder>).)*{tag}))"
    kept = re.split(rf"{begun}.*?</system-reminder>", text, flags=re.DOTALL)
    expected = "\n".join(part.strip() for part in kept).strip()
    assert without_reminders(text) == (expected if len(kept) > 1 else text)


def test_a_tag_that_is_only_spoken_of_is_no_reminder() -> None:
    prose = "\nMemories inside `<system-reminder>` blocks are background.\n\nBe brief.\n"
    request = asked(user("hi"), system=(prose,))
    assert under(AGENTIC, request) == (request, ())
    reminder = "<system-reminder>\nMore of these tags: <system-reminder>.\n</system-reminder>"
    governed, _ = under(AGENTIC, asked(user("hi"), system=(f"{prose}{reminder}\nBe kind.",)))
    assert governed.system == (Text(f"{prose.strip()}\nBe kind."),)


def test_reminders_are_found_in_linear_time() -> None:
    text = "<system-reminder>" * 100_000 + " " * 100_000 + "x"
    assert without_reminders(text) == text
    text = "</system-reminder>" * 100_000 + "x<system-reminder>" * 100_000
    assert without_reminders(text) == text
