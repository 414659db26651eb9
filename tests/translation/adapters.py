"""The adapters that exist, each with targets to try it on and the validator of its provider. New ones join here."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec

from msgspec import Struct

from tests.validators import anthropic, chat, gemini, reasoning, responses
from translation.adapter import Adapter, Target
from translation.providers.profiles import PROFILES

Validate = Callable[[bytes], list[str]]

REGISTRY: tuple[tuple[str, str, str, Validate], ...] = (
    # provider, model, module, validator
    ("openai", "gpt-4.1", "openai_chat", chat.validate),
    ("openai", "gpt-5.5", "openai_chat", chat.validate),
    ("mistral", "mistral-large", "openai_chat", partial(chat.validate, id_length=9, prefill="prefix")),
    ("deepseek", "deepseek-v4", "openai_chat", reasoning.validate),
    ("moonshot", "kimi-k2", "openai_chat", partial(reasoning.validate, prefill="partial")),
    ("openai-responses", "gpt-5.5", "openai_responses", responses.validate),
    ("gemini", "gemini-3-pro", "gemini", gemini.validate),
    ("gemini", "gemini-2.5-flash", "gemini", partial(gemini.validate, signatures=False)),
    ("minimax", "MiniMax-M2", "minimax", partial(reasoning.validate, required=False)),
    ("anthropic", "claude-opus-5", "anthropic", anthropic.validate),
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
    found = []
    for provider, model, module, validate in REGISTRY:
        path = f"translation.providers.{module}"
        if find_spec(path) is not None:
            found.append(Trial(adapter_of(path), Target(provider, model, PROFILES[provider]), validate))
    return found


def adapter_of(path: str) -> Adapter:
    """The one class of a dialect's module that builds requests."""
    made = [value for value in vars(import_module(path)).values() if isinstance(value, type)]
    (adapter,) = [value for value in made if value.__module__ == path and hasattr(value, "build")]
    built: Adapter = adapter()
    return built
