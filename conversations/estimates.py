"""How many tokens a request is, where nobody told: corrected for each model by what its upstream reports.

Every turn gets a quick guess from its bytes. `count` asks the tokenizer, and learns how far off that is from the newest
request whose true number is known: counting that one waits until somebody asks, so that a turn never pays for it.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from conversations.recent import Recent
from conversations.tokens import Tokenizer
from translation.values import Usage

TOKENS_PER_BYTE = 0.25
WEIGHT = 0.2  # of a new observation
LEAST, MOST = 0.02, 2.0  # a ratio outside is an upstream's mistake
SURE = 300  # tokens from which an observation counts for more than half
MODELS = 1_024
SAMPLE_BYTES, SAMPLES = 256 * 1024, 64
LARGE, SHORTEST_FILE, FILE_BYTES = 200_000, 2_000, 6_000
PIECE = 256 * 1024

_BASE64 = re.compile(rb"[A-Za-z0-9+/=]++")


class Sample(Struct, frozen=True):
    """A request whose number of tokens its upstream told."""

    body: bytes
    tokens: int


class Estimates:
    def __init__(self, tokenizer: Tokenizer | None = None) -> None:
        self.tokenizer = tokenizer or Tokenizer()
        self._ratios: dict[tuple[str, str], float] = {}
        self._factors: dict[tuple[str, str], float] = {}  # true tokens per token of the tokenizer
        self._samples: Recent[tuple[str, str], Sample] = Recent(SAMPLES)

    def prompt(self, upstream: str, model: str, weight: int) -> int:
        return max(round(weight * self._ratios.get((upstream, model), TOKENS_PER_BYTE)), 1)

    def usage(self, upstream: str, model: str, weight: int, answered: int) -> Usage:
        """What a turn used that did not end well, from its bytes."""
        output = round(answered * TOKENS_PER_BYTE)
        return Usage(input_tokens=self.prompt(upstream, model, weight), output_tokens=output, estimated=True)

    async def counted(self, upstream: str, model: str, body: bytes, content: bytes) -> Usage:
        """What a turn used whose upstream did not say: clients decide by it when to compact."""
        tokens = await self.count(upstream, model, body)
        output = await self.tokenizer.count(b'{"messages":[{"content":%b}]}' % content)
        return Usage(input_tokens=tokens, output_tokens=output, estimated=True)

    def learn(self, upstream: str, model: str, body: bytes, weight: int, usage: Usage) -> None:
        tokens = usage.input_tokens + usage.cache_read + usage.cache_write
        ratio = tokens / weight if weight else 0.0
        if not LEAST <= ratio <= MOST:
            return
        ratios, name = self._ratios, (upstream, model)
        old = ratios.get(name, ratio)
        if len(ratios) >= MODELS:  # names are the client's: they must not fill the memory
            ratios.clear()
        ratios[name] = old + WEIGHT * (ratio - old)
        # The longest since the last count is the one that says most.
        known = self._samples.get(name)
        if (0 if known is None else len(known.body)) < len(body) <= SAMPLE_BYTES:
            self._samples.put(name, Sample(body, tokens))

    async def count(self, upstream: str, model: str, body: bytes) -> int:
        sample = self._samples.pop((upstream, model), None)
        if sample is not None:
            self._correct(upstream, model, sample.tokens, await self.tokenizer.count(sample.body))
        counted = await self.tokenizer.count(body)
        return max(round(counted * self._factors.get((upstream, model), 1.0)), 1)

    def _correct(self, upstream: str, model: str, tokens: int, counted: int) -> None:
        """A long request says more about a model than a short one, most of which is what is put around it."""
        old = self._factors.get((upstream, model), 1.0)
        weight = counted / (counted + SURE)
        if len(self._factors) >= MODELS:
            self._factors.clear()
        self._factors[upstream, model] = old + weight * (tokens / counted - old)


def weight(body: bytes) -> int:
    """The bytes of a body, where a picture counts for what models make of one, not for its own bytes."""
    if len(body) < LARGE:
        return len(body)
    files = [*_files(body, b"base64,"), *_files(body, b'"data":"')]
    return len(body) - sum(files) + FILE_BYTES * len(files)


def _files(body: bytes, mark: bytes) -> Iterator[int]:
    """The sizes of those that begin after this mark. It is looked for in pieces: meanwhile everybody else waits."""
    place = 0
    while place < len(body):
        at = body.find(mark, place, place + PIECE)
        if at < 0:
            place += PIECE - len(mark) + 1
            continue
        start = place = at + len(mark)
        while run := _BASE64.match(body, place, place + PIECE):
            place = run.end()
        if place - start >= SHORTEST_FILE:
            yield place - start
