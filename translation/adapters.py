"""The adapter of each dialect."""

from translation.adapter import Adapter
from translation.providers.anthropic import Anthropic
from translation.providers.gemini import Gemini
from translation.providers.minimax import MiniMax
from translation.providers.openai_chat import OpenAIChat
from translation.providers.openai_responses import OpenAIResponses
from translation.providers.profiles import Profile

ADAPTERS: dict[str, Adapter] = {
    "openai_chat": OpenAIChat(),
    "openai_responses": OpenAIResponses(),
    "gemini": Gemini(),
    "anthropic": Anthropic(),
    "minimax": MiniMax(),
}


def adapter(profile: Profile) -> Adapter:
    return ADAPTERS[profile.dialect]


def relays(profile: Profile) -> bool:
    """Whether its decoder's frames are the client's answer: the relay writer's, not the block writer's."""
    return profile.dialect == "anthropic"
