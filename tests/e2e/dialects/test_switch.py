"""A conversation that changes its provider between any two turns, also while a call waits for its result.

Each request is legal for who gets it, holds nothing that another made for itself, and whoever comes back finds its own
state where it left it: the models see to all three.
"""

import json

import pytest
from anthropic import Anthropic

from tests.e2e.dialects.conftest import NewChain
from tests.e2e.dialects.conversation import Conversation
from tests.e2e.dialects.models import Models
from tests.e2e.dialects.providers import ALL, BY_NAME, NAMES
from tests.e2e.dialects.script import STEPS
from tests.e2e.dialects.wire import WIRES
from tests.servers.chat import streamed_calls
from tests.servers.client import TOOL, Client, folded, result
from tests.servers.records import Records
from tests.servers.script import sse_answer


@pytest.mark.parametrize("other", NAMES)
@pytest.mark.parametrize("name", NAMES)
def test_a_conversation_goes_back_and_forth(
    name: str, other: str, sdk: Anthropic, models: Models, new_chain: NewChain
) -> None:
    conversation = Conversation(sdk, new_chain(), stream=(len(name) + len(other)) % 2 == 0)
    for number in range(len(STEPS)):
        conversation.turn(BY_NAME[other if number % 2 else name].route)
    assert models.refusals == []


@pytest.mark.parametrize("echo", ["stripped", "newest", "append", "thread"])
@pytest.mark.parametrize("name", NAMES)
def test_it_switches_whatever_the_client_sends_of_its_history(
    name: str, echo: str, sdk: Anthropic, models: Models, new_chain: NewChain
) -> None:
    """Each provider with its neighbours in the list: the first again in the third and the last turn."""
    place = NAMES.index(name)
    others = [ALL[(place + step) % len(ALL)] for step in (0, 1, 0, 5, 0)]
    conversation = Conversation(sdk, new_chain(), stream=echo != "thread", echo=echo)
    for provider in others:
        conversation.turn(provider.route)
    assert models.refusals == []


@pytest.mark.parametrize("name", NAMES)
def test_a_forked_session_finds_what_its_answers_were_made_with(
    name: str, sdk: Anthropic, models: Models, new_chain: NewChain
) -> None:
    """Also those without a call, which nothing but the history names: in its first turn, and once it has its own."""
    chain = new_chain()
    conversation = Conversation(sdk, chain, stream=True)
    for session in ("one", "one", "one", "two", "three"):
        conversation.session = f"{chain.name}-{session}"
        conversation.turn(BY_NAME[name].route)
    assert models.refusals == []


@pytest.mark.parametrize("ids", ["missing", "repeated", "odd", "long"])
@pytest.mark.parametrize("name", NAMES)
def test_the_names_of_calls_do_not_travel(
    name: str, ids: str, sdk: Anthropic, models: Models, new_chain: NewChain
) -> None:
    if name.endswith("responses") and ids == "missing":
        ids = "odd"
    makers = [name, "gemini", name, "openai", name] if ids == "missing" else [name, "zai", name, "openai", name]
    conversation = Conversation(sdk, new_chain(ids), stream=True)
    for maker in makers:
        conversation.turn(BY_NAME[maker].route)
    assert models.refusals == []


def test_what_is_put_in_the_place_of_anothers_state_is_recorded(
    client: Client, models: Models, records: Records
) -> None:
    """Also for answers that the store has: to their new reader they are new."""
    gemini = WIRES["gemini"]
    models.queue(WIRES["openai"].path, *[streamed_calls(("c1", "get_weather", {"city": "P"}))] * 3)
    history: list[object] = ["Hi"]
    for _ in range(3):
        blocks = folded(client.events(*history, model=BY_NAME["openai"].route, tools=[TOOL]))
        history += [{"role": "assistant", "content": blocks}, result(blocks[-1]["id"])]
    seen = []
    for _ in range(2):
        models.queue(gemini.path, sse_answer(*gemini.text, *gemini.end))
        with client.stream(*history, model=BY_NAME["gemini"].route, tools=[TOOL]) as (response, events):
            blocks = folded(list(events))
            seen.append(response.headers.get("x-bridge-warning"))
        history += [{"role": "assistant", "content": blocks}, "And now?"]
    turns = records.ended(client.api_key, 5)
    rules = [
        [note["rule"] for note in json.loads(bytes(turn.notes)) if note["kind"] == "substitution"] for turn in turns
    ]
    assert sorted(rules) == [[], [], [], [], ["signature-substituted"] * 2], "of the last answer, and of one before it"
    assert seen == ["state-substituted", None]
