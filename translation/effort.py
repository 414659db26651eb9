"""How hard to think: the client's `thinking` and `output_config.effort` as one level of the target's scale."""

from translation.patterns import matches
from translation.providers.profile import Profile
from translation.values import Message, Note, Request, ToolResult

SCALE = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
USUAL = ("low", "medium", "high")  # of a reasoning model that the profile says nothing more exact about


def effort(request: Request, profile: Profile, model: str) -> tuple[str, tuple[Note, ...]]:
    """The level to send, "" for none at all, and what was changed about the client's wish."""
    wish = wanted(request)
    if not wish:
        return "", ()
    levels = scale(profile, model)
    if not levels:
        thinks = wish != "none" or is_reasoning(profile, model) or bool(profile.markup)
        return "", (_note(f"{model} takes no effort; {wish} was asked for"),) if thinks else ()
    level = nearest(wish, levels)
    return level, () if level == wish else (_note(f"{model} knows {', '.join(levels)}; {wish} became {level}"),)


def wanted(request: Request) -> str:
    """What the client asked for on our scale; "" leaves it to the model."""
    thinking = request.thinking
    if thinking is not None and thinking.kind == "disabled":
        return "none"
    if request.effort:
        return request.effort
    if thinking is None:
        return ""
    if thinking.budget_tokens is None:
        return "medium"
    return "low" if thinking.budget_tokens <= 4096 else "medium" if thinking.budget_tokens <= 16384 else "high"


def changed(messages: tuple[Message, ...], level: str) -> str:
    """The level that system messages leave an answer with: each holds for the user's new input before or after it."""
    asked, fresh = "", False  # `fresh`: the user's last turn is still to be answered, and more than tool results
    for message in messages:
        if message.role == "assistant":
            fresh = False
        elif message.role == "user":
            fresh = fresh or any(type(block) is not ToolResult for block in message.blocks)
        else:
            asked = message.effort or asked
        if fresh and asked:
            level, asked = asked, ""
    return level


def scale(profile: Profile, model: str) -> tuple[str, ...]:
    for pattern, levels in profile.efforts:
        if matches(model, (pattern,)):
            return levels
    return USUAL if is_reasoning(profile, model) else ()


def is_reasoning(profile: Profile, model: str) -> bool:
    return matches(model, profile.reasoning_models)


def nearest(wish: str, levels: tuple[str, ...]) -> str:
    """Of two that are as near, the higher: so DeepSeek, GLM and Gemini read a `medium` that they do not have.

    An unknown wish is the highest.
    """
    place = SCALE.index(wish) if wish in SCALE else len(SCALE)
    return min(reversed(levels), key=lambda level: abs(SCALE.index(level) - place))


def _note(what: str) -> Note:
    return Note("degradation", "effort-limited", what)
