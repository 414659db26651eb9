"""Whatever a client does to a history, the upstream request is legal, and grows only at its end.

Examples come from seeds, and a failure names its seed: `run(seed)`. In full size they are
fifty times as many: `make torture ONLY=histories`.
"""

from random import Random

import pytest

from tests.torture.ledger import Proof, sized
from tests.translation.adapters import Trial, families
from tests.translation.history.conversations import TOOLS, Conversation, Json, body, conversation
from tests.translation.history.damage import damaged
from tests.validators import anthropic, canonical
from translation.chain import chain
from translation.client.parse import parse
from translation.client.stored import dump_message
from translation.errors import InvalidRequest
from translation.history import repair
from translation.providers.profiles import PROFILES
from translation.state import continues, hydrate, restore, unknown_results
from translation.values import Request, ToolResult, ToolUse

# Coverage is measured by the examples in words; tracing would make these five times slower.
pytestmark = [pytest.mark.no_cover, pytest.mark.timeout(3600)]

EXAMPLES = sized(200_000, 4_000)
FAMILIES = families()
BLOCKS = 20  # test items that share the examples


def understood(sent: list[Json], known: Conversation) -> Request | None:
    """A client's messages as the bridge understands them; None for the one refusal."""
    request = parse(body(sent, tools=TOOLS[: len(sent) % 6]), "2023-06-01", ())
    try:
        unknown_results(request, known.snapshot)
    except InvalidRequest:
        assert is_unknown(request, known)
        return None
    link = continues(request, known.snapshot)
    request, _ = restore(request, known.snapshot, known.until(link.tool_use_id) if link else ())
    return hydrate(request, chain(request.messages), known.snapshot)


def is_unknown(request: Request, known: Conversation) -> bool:
    """Whether a result after the last answer belongs to no call at all."""
    last = max((i for i, message in enumerate(request.messages) if message.role == "assistant"), default=-1)
    called = {b.id for message in request.messages for b in message.blocks if isinstance(b, ToolUse)}
    results = [b.tool_use_id for m in request.messages[last + 1 :] for b in m.blocks if isinstance(b, ToolResult)]
    return any(id_ not in called and id_ not in known.snapshot.links for id_ in results)


@pytest.mark.proves("histories")
@pytest.mark.parametrize("block", range(BLOCKS))
def test_any_history_becomes_a_legal_request_for_every_provider(block: int, proof: Proof) -> None:
    share = max(1, EXAMPLES // BLOCKS)
    refused = 0
    for seed in range(block * share, (block + 1) * share):
        with proof.trial(f"seed {seed}"):
            refused += run(seed)
    assert share < 100 or refused < share / 5, "the generator should mostly make requests that are served"


def run(seed: int) -> bool:
    """One example: whether it was refused."""
    rng = Random(seed)
    images = rng.random() < 0.5
    known = conversation(rng, images=images)
    request = understood(damaged(rng, known.messages), known)
    if request is None:
        return True
    check_canonical(request, seed)
    for family in FAMILIES:
        trial = rng.choice(family)
        if trial.target.profile.images or not images:
            check(trial, request, seed)
    return False


def check_canonical(request: Request, seed: int) -> None:
    repaired, notes = repair(request, PROFILES["openai"])
    assert canonical.validate(repaired.messages) == [], f"seed {seed}"
    assert bool(notes) == (repaired is not request), f"seed {seed}"
    assert repair(repaired, PROFILES["openai"])[0].messages is repaired.messages, f"seed {seed}"
    native, _ = repair(request, PROFILES["anthropic"])
    assert anthropic_violations(native) == [], f"seed {seed}"
    assert repair(native, PROFILES["anthropic"])[0] is native, f"seed {seed}"


def anthropic_violations(request: Request) -> list[str]:
    """Signatures are the adapter's business, and foreign ids are aliased by it."""
    raw = b",".join(map(dump_message, request.messages))
    found = anthropic.validate(b'{"model":"m","max_tokens":1,"messages":[%s]}' % raw)
    return [each for each in found if "thinking" not in each]


def check(trial: Trial, request: Request, seed: int) -> None:
    repaired, _ = repair(request, trial.target.profile)
    sent = trial.adapter.build(repaired, trial.target)
    assert trial.validate(sent.body) == [], f"seed {seed}, {trial.id}: {sent.body.decode()}"


def test_what_was_repaired_stays_as_it_was_when_the_history_grows() -> None:
    for seed in range(EXAMPLES // 10):
        rng = Random(seed)
        known = conversation(rng)
        request = understood(damaged(rng, known.messages), known)
        if request is None:
            continue
        roles = [message.role for message in request.messages]
        ends = [end for end in range(1, len(roles)) if roles[end] == "assistant" and roles[end - 1] != "assistant"]
        for provider in ("openai", "anthropic"):
            whole = repaired_messages(request, provider)
            for end in ends:
                part = repaired_messages(request, provider, end)
                assert whole[: len(part)] == part, f"seed {seed}, {provider}, {end}"


def repaired_messages(request: Request, provider: str, end: int | None = None) -> tuple[object, ...]:
    fields = {name: getattr(request, name) for name in request.__struct_fields__}
    cut = Request(**{**fields, "messages": request.messages[:end]})
    return repair(cut, PROFILES[provider])[0].messages
