"""What Gemini's models can do, as data: a table of name patterns, the first match counts."""

from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec import Struct

ANSWER = 65_536


class Abilities(Struct, frozen=True, kw_only=True):
    budget: tuple[int, int] | None = None  # smallest and largest thinkingBudget
    stoppable: bool = False  # takes a thinkingBudget of 0
    levels: tuple[str, ...] = ()  # of thinkingLevel, rising
    signatures: bool = False  # refuses a step whose first call has no thought signature
    mixes: bool = False  # takes functions beside its own search and beside a response schema
    max_output: int = 0  # the largest maxOutputTokens, 0 when it is not known


def _levels(*levels: str) -> Abilities:
    return Abilities(levels=levels, signatures=True, mixes=True, max_output=ANSWER)


MODELS: tuple[tuple[str, Abilities], ...] = (
    ("gemini-2.5-*image*", Abilities(max_output=32_768)),
    ("gemini-2.5-*tts*", Abilities()),
    ("gemini-2.5-pro*", Abilities(budget=(128, 32_768), max_output=ANSWER)),
    ("gemini-2.5-flash-lite*", Abilities(budget=(512, 24_576), stoppable=True, max_output=ANSWER)),
    ("gemini-2.5-flash*", Abilities(budget=(1, 24_576), stoppable=True, max_output=ANSWER)),
    ("gemini-2.0*", Abilities(max_output=8_192)),
    ("gemini-1.5*", Abilities(max_output=8_192)),
    ("gemini-3*image*", _levels()),
    ("gemini-3-pro*", _levels("low", "high")),
    ("gemini-3-flash*", _levels("minimal", "low", "medium", "high")),
    ("gemini-3.[1-6]-flash*", _levels("minimal", "low", "medium", "high")),
    ("gemini-*flash-lite*", _levels("minimal", "low", "medium", "high")),
    ("gemini-[3-9]*", _levels("low", "medium", "high")),  # Pro; Flash since 3.7, which refuses `minimal`
    ("gemini-*-latest", _levels("low", "medium", "high")),
)
UNKNOWN = Abilities()


@lru_cache(maxsize=1024)
def abilities(model: str) -> Abilities:
    name = model.lower().rpartition("/")[2]
    return next((known for pattern, known in MODELS if fnmatchcase(name, pattern)), UNKNOWN)
