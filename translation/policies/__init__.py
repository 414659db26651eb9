"""What the bridge changes on purpose before a request goes to a model that is not Claude.

A rule is a function of the request and the route's policy; it returns the same request when it changes nothing and
leaves a note when it fires. R1 (content shapes) is the client's parser; R4, R5 and R9 (calls, results, streaming) are
the adapters; what makes a history legal is `translation.history`: these are always on.
"""

from collections.abc import Callable
from functools import lru_cache

from translation.policies.loops import Watch, flag_loop, remind_of_loop, retry_repeated_call, watch, with_reminder
from translation.policies.policy import Policy
from translation.policies.system import add_guardrail, add_guidance, strip_billing_header, strip_system_reminders
from translation.policies.texts import drop_echo, drop_old_text, drop_repeated_text, strip_turn_reminders
from translation.policies.tools import answer_after_results, narrow_to_reading
from translation.providers.profile import Profile
from translation.values import Note, Request, ToolResult, ToolUse

Rule = Callable[[Request, Policy, list[Note]], Request]

RULES: tuple[Rule, ...] = (
    strip_billing_header,
    strip_system_reminders,
    strip_turn_reminders,
    answer_after_results,
    drop_old_text,
    drop_echo,
    drop_repeated_text,
    narrow_to_reading,
    flag_loop,
    remind_of_loop,
    retry_repeated_call,
    add_guardrail,
    add_guidance,
)
AGENTIC: tuple[Rule, ...] = (
    strip_billing_header,
    strip_system_reminders,
    drop_echo,
    flag_loop,
    remind_of_loop,
    add_guidance,
)
CONSERVATIVE: tuple[Rule, ...] = (
    strip_billing_header,
    strip_system_reminders,
    strip_turn_reminders,
    answer_after_results,
    drop_old_text,
    drop_repeated_text,
    narrow_to_reading,
    flag_loop,
    retry_repeated_call,
    add_guardrail,
    add_guidance,
)
OF_SYSTEM = frozenset((strip_billing_header, strip_system_reminders))  # they read nothing else
OF_CALLS = frozenset((drop_echo, flag_loop, remind_of_loop))  # and of their results
PROFILES = {"agentic": AGENTIC, "conservative": CONSERVATIVE}
ALWAYS = (strip_billing_header,)  # no prompt cache would survive it
SWITCHES = tuple(rule.__name__ for rule in RULES if rule not in ALWAYS)


def apply(request: Request, profile: Profile, policy: Policy) -> tuple[Request, tuple[Note, ...]]:
    """The request under the policy's rules, and which of them fired. Off toward Anthropic."""
    if profile.dialect == "anthropic":
        return request, ()
    notes: list[Note] = []
    kinds = request.kinds
    calls = ToolUse in kinds or ToolResult in kinds
    for rule in _apt(policy, system=bool(request.system), calls=calls):
        request = rule(request, policy, notes)
    return request, tuple(notes)


@lru_cache(maxsize=256)
def _apt(policy: Policy, *, system: bool, calls: bool) -> tuple[Rule, ...]:
    """Those that may find something in a request with a system prompt, or calls, or without."""
    idle = (frozenset() if system else OF_SYSTEM) | (frozenset() if calls else OF_CALLS)
    return tuple([rule for rule in rules(policy) if rule not in idle])


def rules(policy: Policy) -> tuple[Rule, ...]:
    """Those of the profile, with the policy's switches, in their order."""
    profile = PROFILES[policy.name]
    if not policy.switches:
        return profile
    switches = dict(policy.switches)
    return tuple(rule for rule in RULES if rule in ALWAYS or switches.get(rule.__name__, rule in profile))


def watched(request: Request, profile: Profile, policy: Policy) -> Watch | None:
    """What has to look at the answer to a request, if anything does."""
    if profile.dialect == "anthropic" or retry_repeated_call not in rules(policy):
        return None
    return watch(request, policy)


__all__ = ["RULES", "SWITCHES", "Policy", "Rule", "Watch", "apply", "rules", "watched", "with_reminder"]
