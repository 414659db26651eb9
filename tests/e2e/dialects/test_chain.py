"""The same chain with every provider: a call, two at once of which one fails, a text, and once more.

The models refuse what the real ones refuse, and demand their opaque state back byte for byte at its place.
"""

import httpx
import pytest
from anthropic import Anthropic
from anthropic.types import Message

from tests.e2e.dialects.conftest import NewChain
from tests.e2e.dialects.conversation import ECHOES, Conversation
from tests.e2e.dialects.models import Models
from tests.e2e.dialects.providers import BY_NAME, NAMES
from tests.e2e.dialects.script import COST, IDS, STEPS, THOUGHT_TOKENS, Chain, Speech

SILENT = ("openai", "azure")  # their reasoning is never told in this API
# Anthropic's ids are always good, MiniMax's markup has none, and the Responses API names every call.
NAMED = [
    (name, ids)
    for name in NAMES
    for ids in IDS
    if name not in ("anthropic", "minimax", "minimax-m3") and not (name.endswith("responses") and ids == "missing")
]


def check(message: Message, provider: str, chain: Chain, number: int, *, stream: bool) -> None:
    step, speech = STEPS[number], Speech(provider, chain, number, stream)
    assert "".join(block.text for block in message.content if block.type == "text") == step.text
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    assert calls == [(call.name, call.arguments) for call in step.calls]
    assert message.stop_reason == ("tool_use" if step.calls else "end_turn")
    thoughts = [block for block in message.content if block.type == "thinking"]
    assert [block.thinking for block in thoughts] == ([] if provider in SILENT else [speech.thought])
    assert all(block.signature for block in thoughts)
    usage = message.usage.model_dump()
    assert {name: usage[name] for name in COST} == COST
    assert (usage["cache_creation_input_tokens"] or 0) == 0
    assert usage["output_tokens_details"]["thinking_tokens"] == THOUGHT_TOKENS


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("name", NAMES)
def test_the_chain_comes_to_its_end(
    name: str, echo: str, stream: bool, sdk: Anthropic, models: Models, new_chain: NewChain
) -> None:
    chain = new_chain()
    conversation = Conversation(sdk, chain, stream=stream, echo=echo)
    for number in range(len(STEPS)):
        message = conversation.turn(BY_NAME[name].route)
        check(message, name, chain, number, stream=stream)
    assert models.refusals == []
    assert len(models.requests) == len(STEPS)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("name", "ids"), NAMED)
def test_whatever_a_model_calls_its_calls(
    name: str, ids: str, stream: bool, sdk: Anthropic, models: Models, new_chain: NewChain
) -> None:
    chain = new_chain(ids)
    conversation = Conversation(sdk, chain, stream=stream)
    seen: list[str] = []
    for _ in STEPS:
        message = conversation.turn(BY_NAME[name].route)
        seen += [block.id for block in message.content if block.type == "tool_use"]
    assert models.refusals == []
    assert len(set(seen)) == len(seen) == 4
    assert all(id_.startswith("toolu_") and len(id_) == 30 for id_ in seen)


STATEFUL = tuple(name for name in NAMES if name not in ("openai", "azure", "xai", "mistral"))


@pytest.mark.parametrize("name", STATEFUL)
def test_the_model_would_have_noticed(name: str, sdk: Anthropic, models: Models, new_chain: NewChain) -> None:
    """The same request with one letter of the state changed, or with a call unanswered, is refused."""
    chain = new_chain()
    conversation = Conversation(sdk, chain, stream=True)
    for _ in range(3):
        conversation.turn(BY_NAME[name].route)
    sent, speech = models.requests[-1], Speech(name, chain, 1, stream=True)
    address = f"{models.url}{sent.path}?{sent.query}"
    assert httpx.post(address, content=sent.body).status_code == 200
    for wanted in (speech.blob, speech.secret("thought")):
        if wanted.encode() in sent.body:
            damaged = sent.body.replace(wanted.encode(), wanted[:-1].encode() + b"A")
            assert httpx.post(address, content=damaged).status_code == 400
    without = sent.body.replace(b"output 1.0", b"output 9.9")
    assert httpx.post(address, content=without).status_code == 400
    assert len(models.refusals) >= 2
