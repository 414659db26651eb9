"""Each adapter that exists, with targets to try it on and the validator of its provider. New targets join here."""

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from tests.validators import anthropic, chat, gemini, reasoning, responses
from translation.adapter import Adapter, Target
from translation.adapters import ADAPTERS
from translation.providers.profiles import PROFILES

Validate = Callable[[bytes], list[str]]

TARGETS: tuple[tuple[str, str, Validate], ...] = (
    # provider, model, validator
    ("openai", "gpt-4.1", chat.validate),
    ("openai", "gpt-5.5", chat.validate),
    ("mistral", "mistral-large", partial(chat.validate, id_length=9, prefill="prefix")),
    ("deepseek", "deepseek-v4", reasoning.validate),
    ("moonshot", "kimi-k2", partial(reasoning.validate, prefill="partial")),
    ("openai-responses", "gpt-5.5", responses.validate),
    ("gemini", "gemini-3-pro", gemini.validate),
    ("gemini", "gemini-2.5-flash", partial(gemini.validate, signatures=False)),
    ("minimax", "MiniMax-M2", partial(reasoning.validate, required=False)),
    ("anthropic", "claude-opus-5", anthropic.validate),
)


class Trial(Struct, frozen=True):
    adapter: Adapter
    target: Target
    validate: Validate

    @property
    def id(self) -> str:
        return f"{self.target.upstream}/{self.target.model}"


def families() -> list[list[Trial]]:
    """The trials by the rules that they answer to."""
    found: dict[object, list[Trial]] = {}
    for trial in trials():
        rules = trial.validate.func if isinstance(trial.validate, partial) else trial.validate
        found.setdefault(rules, []).append(trial)
    return list(found.values())


def trials() -> list[Trial]:
    return [
        Trial(ADAPTERS[PROFILES[provider].dialect], Target(provider, model, PROFILES[provider]), validate)
        for provider, model, validate in TARGETS
        if PROFILES[provider].dialect in ADAPTERS
    ]
