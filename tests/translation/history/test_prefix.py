"""Promise 5: while a client only appends, the upstream request only grows at its end, byte for byte."""

from itertools import pairwise
from random import Random

import msgspec
import pytest

from tests.torture.ledger import sized
from tests.translation.adapters import Trial, trials
from tests.translation.history.conversations import TOOLS, Conversation, Json, blocks_of, body, conversation
from tests.translation.history.damage import without_thinking
from translation.chain import chain
from translation.client.parse import parse
from translation.history import repair
from translation.policies import Policy, apply
from translation.state import hydrate

pytestmark = [pytest.mark.no_cover, pytest.mark.timeout(3600)]

SESSIONS = sized(2000, 100)
LOADED = [{key: value for key, value in tool.items() if key != "defer_loading"} for tool in TOOLS]


def session(rng: Random, known: Conversation) -> list[bytes]:
    """The requests of one Claude Code session: the history grows; its form, its marks and its header change."""
    roles = [message["role"] for message in known.messages]
    ends = [end for end in range(1, len(roles) + 1) if end == len(roles) or roles[end] == "assistant"]
    messages = without_thinking(rng, known.messages) if rng.random() < 0.5 else known.messages
    return [request(rng, messages[:end]) for end in ends]


def request(rng: Random, messages: list[Json]) -> bytes:
    mark = {"cache_control": {"type": "ephemeral"}}
    system = [
        {
            "type": "text",
            "text": f"x-anthropic-billing-header: cc_version=2.1.325.{rng.randrange(999)}; cch=a{rng.random()};",
        },
        {"type": "text", "text": "You are Claude Code.", **mark},
        {"type": "text", "text": "Be brief.", **mark},
    ]
    formed = [reformed(rng, message) for message in messages]
    last = blocks_of(formed[-1])
    formed[-1] = {**formed[-1], "content": [*last[:-1], {**last[-1], **mark}]}
    return body(formed, system=system, tools=LOADED, stream=True, thinking={"type": "adaptive"})


def reformed(rng: Random, message: Json) -> Json:
    """The same message in one of its forms: one text is a string or a list."""
    content = blocks_of(message)
    if len(content) == 1 and content[0]["type"] == "text" and rng.random() < 0.5:
        return {**message, "content": content[0]["text"]}
    return {**message, "content": content}


def sent(trial: Trial, raw: bytes, known: Conversation) -> bytes:
    said = parse(raw, "2023-06-01", ())
    said = hydrate(said, chain(said.messages), known.snapshot)
    governed, _ = apply(said, trial.target.profile, Policy("agentic"))
    legal, _ = repair(governed, trial.target.profile)
    return trial.adapter.build(legal, trial.target).body


@pytest.mark.parametrize(
    "trial", [trial for trial in trials() if trial.target.profile.dialect != "anthropic"], ids=lambda trial: trial.id
)
def test_each_request_is_a_byte_prefix_of_the_next(trial: Trial) -> None:
    for seed in range(SESSIONS):
        rng = Random(seed)
        known = conversation(rng, images=trial.target.profile.images)
        bodies = [sent(trial, raw, known) for raw in session(rng, known)]
        for one, other in pairwise(bodies):
            assert one.endswith(b"]}")
            assert other.startswith(one[:-2]), f"seed {seed}:\n{one.decode()}\n{other.decode()}"
            assert isinstance(msgspec.json.decode(other), dict)
