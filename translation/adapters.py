"""The adapter of each dialect."""

from translation.adapter import Adapter
from translation.providers.openai_chat import OpenAIChat
from translation.providers.profiles import Profile

ADAPTERS: dict[str, Adapter] = {"openai_chat": OpenAIChat()}


def adapter(profile: Profile) -> Adapter:
    return ADAPTERS[profile.dialect]
