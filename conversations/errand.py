"""What a turn asks, and of whom. While nothing has been shown, a failed attempt may change either."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from conversations.course import Course
from conversations.preparing import Prepared, aim_elsewhere, build, outgoing
from conversations.storable import storable, words
from translation import adapters, policies
from translation.errors import BridgeError, InvalidRequest, RepeatedCall, UpstreamFault, UpstreamGaveUp
from translation.values import Note

if TYPE_CHECKING:
    from conversations.bridge import Bridge
    from conversations.routing import Route

HEALINGS = 12  # of one request at one target: as many as it has parameters that can be spared


class Errand(Struct, eq=False):
    _bridge: Bridge
    prepared: Prepared
    _storage: str
    notes: list[Note]
    _course: Course | None = None  # once an attempt has failed
    _healed: int = 0
    _asked_again: bool = False
    _reminded: bool = False
    _goes_on: bool = False

    def next_round(self, prepared: Prepared) -> None:
        """The answer goes on after tools that the bridge ran."""
        self.prepared, self._goes_on, self._healed, self._course = prepared, True, 0, None
        self.notes += [note for note in prepared.notes if note not in self.notes]

    def over(self, error: BridgeError | None) -> None:
        """An error holds the frames that it came through, they hold the error and the turn: nothing of it, not even its
        buffers, would go before the collector came by."""
        self._course = None
        trace: BaseException | None = error
        while trace is not None:
            trace.__traceback__, trace = None, trace.__context__

    def watch(self) -> policies.Watch | None:
        """What looks at the answer before it is shown."""
        aimed = self.prepared.aimed
        route = aimed.route
        return None if self._reminded else policies.watched(aimed.request, route.target.profile, route.policy)

    async def go_on(self, error: UpstreamFault, answer: bytes) -> None:
        """Returns when another attempt is worth making; raises what the client is told when none is."""
        if self._changed(error, answer):
            return
        bridge, route = self._bridge, self.prepared.route
        course = self._course = self._course or Course(bridge.settings.retries, bridge.upstreams.health)
        step = course.after(route, error)
        if step is None:
            raise course.error or error
        if step.route is not route:
            self._turn_to(step.route, course.error or error, error)
        await asyncio.sleep(step.pause)

    # ------------------------------------------------------------ the same target

    def _changed(self, error: UpstreamFault, answer: bytes) -> bool:
        """Whether there is reason to ask the same target again at once, maybe differently."""
        match error:
            case RepeatedCall():
                return self._remind()
            case UpstreamGaveUp():
                return self._ask_again(error)
            case _:
                return self._heal(error, answer)

    def _remind(self) -> bool:
        """Once per turn, an answer that is a loop is asked for again with the guardrail sentence."""
        aimed, self._reminded = self.prepared.aimed, True
        request = policies.with_reminder(aimed.request, aimed.route.policy)
        aimed = replace(aimed, request=request, sent=build(request, aimed.route))
        self.prepared = replace(self.prepared, aimed=aimed)
        self.notes.append(Note("policy", "Loop", "the answer repeated a call: asked again with the guardrail sentence"))
        return True

    def _ask_again(self, error: UpstreamGaveUp) -> bool:
        """Once per turn, the same request for an answer that the upstream had given up on."""
        asked, self._asked_again = self._asked_again, True
        if not asked:
            self.notes.append(Note("repair", "asked-again", f"asked once more: {words(error, self._storage)[:300]}"))
        return not asked

    def _heal(self, error: UpstreamFault, answer: bytes) -> bool:
        """A request that the upstream refused for a reason that we know is changed and sent again.

        Upstreams name one parameter at a time. A change that changes nothing is none, so the same refusal ends it.
        """
        prepared, route = self.prepared, self.prepared.route
        if self._healed == HEALINGS or error.transient:
            return False
        healed = adapters.healed(outgoing(prepared.request, route), route.target, prepared.sent, error, answer)
        if healed is None:
            return False
        self._healed += 1
        if healed.remedy is not None:
            self._bridge.learn(route.target, healed.remedy)
        self.notes += [note for note in healed.sent.notes if note not in prepared.sent.notes]
        known = replace(route, target=healed.target)
        self.prepared = replace(prepared, aimed=replace(prepared.aimed, route=known, sent=healed.sent))
        return True

    # ------------------------------------------------------------ another target

    def _turn_to(self, route: Route, told: UpstreamFault, error: UpstreamFault) -> None:
        """Make the request ready for another target; one that cannot take it is passed over. If none can, the client is
        told what its own target said."""
        before = self.prepared
        for candidate in (route, *route.following()):
            if self._goes_on and not _alike(candidate, before.route):
                self._note(f"{candidate.name} cannot go on with an answer that is half written in another way")
                continue
            try:
                self.prepared = aim_elsewhere(before, candidate)
            except InvalidRequest as unfit:
                self._note(f"{candidate.name} cannot take the request: {unfit.message}")
            else:
                own = [note for note in self.notes if note not in before.notes]
                self.notes = [*self.prepared.notes, *own]
                said = words(error, self._storage)
                self._note(f"{before.route.name} failed ({said}): {candidate.name} was asked instead")
                self._healed = 0
                return
        raise told

    def _note(self, what: str) -> None:
        self.notes.append(Note("degradation", "fallback", storable(what, 2000)))


def _alike(one: Route, other: Route) -> bool:
    """Both relay what the upstream writes, or neither does."""
    return adapters.relays(one.target.profile) == adapters.relays(other.target.profile)
