"""Tokens from bytes, where nobody told: a ratio per model, learned from what upstreams report."""

from translation.values import Usage

TOKENS_PER_BYTE = 0.25
WEIGHT = 0.2  # of a new observation
LEAST, MOST = 0.02, 2.0  # a ratio outside is an upstream's mistake


class Estimates:
    def __init__(self) -> None:
        self._ratios: dict[tuple[str, str], float] = {}

    def prompt(self, upstream: str, model: str, size: int) -> int:
        return max(round(size * self._ratios.get((upstream, model), TOKENS_PER_BYTE)), 1)

    def usage(self, upstream: str, model: str, sent: int, answered: int) -> Usage:
        """What a turn used whose upstream did not say."""
        output = round(answered * TOKENS_PER_BYTE)
        return Usage(input_tokens=self.prompt(upstream, model, sent), output_tokens=output, estimated=True)

    def learn(self, upstream: str, model: str, size: int, usage: Usage) -> None:
        tokens = usage.input_tokens + usage.cache_read + usage.cache_write
        ratio = tokens / size if size else 0.0
        if LEAST <= ratio <= MOST:
            old = self._ratios.get((upstream, model), ratio)
            self._ratios[upstream, model] = old + WEIGHT * (ratio - old)
