"""The adapter of each dialect, what writes its answers, and the one more try that a refused request may be worth."""

from collections.abc import Mapping
from itertools import compress

from msgspec import Struct
from msgspec.structs import replace

from translation.adapter import Adapter, Forgetful, Target, UpstreamRequest, Writer
from translation.errors import OPAQUE_STATE_REJECTED, BridgeError
from translation.extras import given
from translation.fields import unheard
from translation.hosted import Offer
from translation.hosted_relay import HostedRelay
from translation.providers.anthropic import Anthropic
from translation.providers.gemini import Gemini
from translation.providers.minimax import MiniMax
from translation.providers.openai_chat import OpenAIChat
from translation.providers.openai_responses import OpenAIResponses
from translation.providers.profile import Profile
from translation.relay import RelayWriter
from translation.remedies import Remedy, remedy, remembered
from translation.state import OUR_SIGNATURE
from translation.tool_limit import within
from translation.values import EAGER, NAME, TOOLSET, Note, Request
from translation.writer import NO_TOOLSETS, NONE_HOSTED, BlockWriter, Showing

ADAPTERS: dict[str, Adapter] = {
    "openai_chat": OpenAIChat(),
    "openai_responses": OpenAIResponses(),
    "gemini": Gemini(),
    "anthropic": Anthropic(),
    "minimax": MiniMax(),
}


CHAT = ("openai_chat", "minimax")
NONE_EAGER: frozenset[str] = frozenset()


def adapter(profile: Profile) -> Adapter:
    return ADAPTERS[profile.dialect]


def left_out(request: Request, profile: Profile) -> tuple[Note, ...]:
    """What only another dialect has. To Anthropic goes all that its own clients wrote."""
    other = _other_parameters(request, profile) if request.extras else ()
    if profile.dialect == "anthropic" and request.body:
        return other
    lost = unheard(request, profile)
    return (*other, *lost) if other else lost


def _other_parameters(request: Request, profile: Profile) -> tuple[Note, ...]:
    """Chat parameters."""
    if profile.dialect in CHAT:
        return ()
    names = ", ".join(name for name in given(request) if name not in profile.extras)
    return (Note("degradation", "parameter-dropped", f"{profile.title} takes no {names}"),) if names else ()


def relays(profile: Profile) -> bool:
    """Whether its decoder's frames are the client's answer: the relay writer's, not the block writer's."""
    return profile.dialect == "anthropic"


def writer(profile: Profile, request: Request, message_id: str, hosted: Mapping[str, Offer] | None = None) -> Writer:
    """With tools that the bridge runs itself it is one that can go on after their results."""
    if relays(profile):
        # A thread goes on by its message's id.
        return HostedRelay(hosted) if hosted is not None else RelayWriter(message_id if request.thread else "")
    shown: Showing = "shown"
    if request.thinking is not None and request.thinking.kind == "disabled":
        shown = "hidden"  # some models cannot be told not to think
    elif request.thinking is not None and request.thinking.display == "omitted":
        shown = "omitted"
    return BlockWriter(
        signature=OUR_SIGNATURE + message_id,
        eager=frozenset(compress(map(NAME, request.tools), map(EAGER, request.tools))) if request.tools else NONE_EAGER,
        thinking=shown,
        live=request.stream,
        hosted=hosted or NONE_HOSTED,
        toolsets={tool.name: tool.toolset for tool in request.tools if tool.toolset}
        if request.tools and any(map(TOOLSET, request.tools))
        else NO_TOOLSETS,
    )


class Healed(Struct, frozen=True):
    """A request changed after its refusal, for a target that is known better now; `remedy` when that is worth
    remembering."""

    sent: UpstreamRequest
    target: Target
    remedy: Remedy | None = None


def healed(request: Request, target: Target, sent: UpstreamRequest, error: BridgeError, body: bytes) -> Healed | None:
    """What to send instead of a request that was refused with this body, if there is something."""
    speaker = adapter(target.profile)
    if error.code == OPAQUE_STATE_REJECTED and isinstance(speaker, Forgetful):
        bare = speaker.without_state(sent)
        return Healed(bare, target) if bare is not sent else None
    found = remedy(body, sent) if error.status == 400 else None
    if found is None or (found.max_tokens is not None and relays(target.profile)):
        return None  # Anthropic's clients know what to do about its own words
    profile = remembered(target.profile, found)
    limited = request if found.max_tokens is None else replace(request, max_tokens=found.max_tokens)
    known = replace(target, profile=profile)
    notes = [Note("degradation", "parameter-healed", f"sent again, since the upstream said: {found.why[:300]}")]
    if (tools := within(limited.tools, profile.tool_limit, limited, notes)) is not limited.tools:
        limited = replace(limited, tools=tools, raw_tools=b"")
    again = speaker.build(limited, known)
    if again.body == sent.body:
        return None
    return Healed(replace(again, notes=(*again.notes, *notes)), known, found if profile != target.profile else None)
