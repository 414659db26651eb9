"""The adapter of each dialect."""

from translation.adapter import Adapter
from translation.providers.gemini import Gemini
from translation.providers.openai_chat import OpenAIChat
from translation.providers.openai_responses import OpenAIResponses
from translation.providers.profiles import Profile

ADAPTERS: dict[str, Adapter] = {
    "openai_chat": OpenAIChat(),
    "openai_responses": OpenAIResponses(),
    "gemini": Gemini(),
}


def adapter(profile: Profile) -> Adapter:
    return ADAPTERS[profile.dialect]
