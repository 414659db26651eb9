"""Promise 5 under `agentic`: what the rules do to a history they do again when it has grown, in the same places."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.translation.policies.requests import AGENTIC, CONSERVATIVE, answer, asked, call, result, under, user
from translation.adapter import Target
from translation.adapters import adapter
from translation.history import repair
from translation.policies import Policy
from translation.providers.profiles import PROFILES
from translation.values import Message, Request

BILLING = "x-anthropic-billing-header: cch={};"
# Few words and few files, so that everything repeats.
words = st.sampled_from(["Read it.", "read it", "Go on.", "<system-reminder>mind</system-reminder>"])
turns = st.tuples(
    st.sampled_from([b'{"a":1}', b'{"b":1}']), st.sampled_from(["same", "same", "other"]), st.lists(words)
)
unhurried = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
sessions = st.tuples(words, st.lists(turns, max_size=14), st.booleans())


def history(opening: str, calls: list[tuple[bytes, str, list[str]]], *, parallel: bool) -> list[Message]:
    messages = [user(opening)]
    for number, (arguments, output, said) in enumerate(calls):
        uses = [call(2 * number, arguments)] + ([call(2 * number + 1, b'{"a":1}')] if parallel else [])
        results = [result(2 * number, output)] + ([result(2 * number + 1, "same")] if parallel else [])
        messages += [answer(*uses), user(*results, *said)]
    return messages


def sent(request: Request, provider: str, policy: Policy) -> bytes:
    target = Target(provider, "m", PROFILES[provider])
    governed, _ = under(policy, request, provider)
    legal, _ = repair(governed, target.profile)
    return adapter(target.profile).build(legal, target).body


def requests(messages: list[Message]) -> list[Request]:
    """One after each turn of the user; the billing header is another one each time."""
    ends = range(1, len(messages) + 1, 2)
    return [asked(*messages[:end], system=(BILLING.format(end), "Be brief.")) for end in ends]


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "gemini", "minimax"])
@unhurried
@given(session=sessions)
def test_a_request_is_a_byte_prefix_of_the_next(
    provider: str, session: tuple[str, list[tuple[bytes, str, list[str]]], bool]
) -> None:
    opening, calls, parallel = session
    bodies = [sent(request, provider, AGENTIC) for request in requests(history(opening, calls, parallel=parallel))]
    for one, other in pairwise(bodies):
        assert other.startswith(one[:-2])


@unhurried
@given(session=sessions)
def test_messages_only_append_under_conservative_too(
    session: tuple[str, list[tuple[bytes, str, list[str]]], bool],
) -> None:
    opening, calls, parallel = session
    policy = replace(CONSERVATIVE, guidance="Be kind.")
    governed = [under(policy, request)[0] for request in requests(history(opening, calls, parallel=parallel))]
    for one, other in pairwise(governed):
        assert other.messages[: len(one.messages)] == one.messages
        assert other.system == one.system


@unhurried
@given(session=sessions)
def test_a_rule_that_changes_nothing_returns_the_same_request(
    session: tuple[str, list[tuple[bytes, str, list[str]]], bool],
) -> None:
    opening, calls, parallel = session
    request = asked(*history(opening, calls, parallel=parallel))
    governed, notes = under(AGENTIC, request)
    assert (governed is request) == (not [note for note in notes if note.rule != "Loop"])
    again, _ = under(replace(AGENTIC, switches=(("flag_loop", False), ("remind_of_loop", False))), governed)
    assert again is governed
