"""Whatever an upstream sends, the client gets a legal answer or a legal error, once, and the conversation can go on."""

from random import Random

import pytest

from tests.torture import mutation, streams
from tests.torture.ledger import Proof, Trials
from tests.translation.captures import CAPTURES, Case, cases, cut

CASES = cases(*sorted(folder.name for folder in CAPTURES.iterdir()))
BLOCKS = 4  # test items that share the trials

pytestmark = pytest.mark.proves("streams")


def alike(case: Case) -> list[Case]:
    """The captures of the same dialect."""
    return [each for each in CASES if each.profile.dialect == case.profile.dialect]


ALIKE: dict[str, list[Case]] = {case.profile.dialect: alike(case) for case in CASES}


@pytest.mark.parametrize("block", range(BLOCKS))
def test_fuzzed_streams_give_a_legal_answer_or_error(proof: Proof, trials: Trials, block: int) -> None:
    share = trials(1_000_000 / BLOCKS, 8_000 / BLOCKS)
    for seed in range(block * share, (block + 1) * share):
        with proof.trial(f"one({seed})"):
            one(seed)


def one(seed: int) -> None:
    rng = Random(seed)
    case = rng.choice(CASES)
    content_type, body = mutation.fuzzed(rng, case, ALIKE[case.profile.dialect])
    stream = rng.random() < 0.6
    told = streams.answer(case, content_type, cut(body, mutation.cuts(rng, len(body))), stream=stream)
    if streams.check(case, told, stream=stream) is not None:
        streams.check_continues(case, told)


def test_every_capture_cut_at_every_byte_ends_once(proof: Proof, trials: Trials) -> None:
    for case in CASES:
        complete = streams.check(
            case, streams.answer(case, case.content_type, [case.upstream], stream=True), stream=True
        )
        length = len(case.upstream)
        for end in Random(case.id).sample(range(length), min(length, round(length * trials(1000, 8) / 1000) + 1)):
            with proof.trial(f"{case.id}[:{end}]"):
                told = streams.answer(case, case.content_type, [case.upstream[:end]], stream=True)
                blocks = streams.check(case, told, stream=True)
                assert blocks is None or blocks == complete, "half an answer was shown as a whole one"


@pytest.mark.parametrize("dialect", sorted(ALIKE))
def test_a_line_of_ten_megabytes_is_no_hang(proof: Proof, trials: Trials, dialect: str) -> None:
    for seed in range(trials(40, 1)):
        rng = Random(seed)
        case = rng.choice(ALIKE[dialect])
        content_type, body = mutation.huge(case, rng)
        with proof.trial(f"{case.id}, seed {seed}"):
            told = streams.answer(case, content_type, cut(body, range(0, len(body), 65536)), stream=True)
            streams.check(case, told, stream=True)
