"""The tool calls of one chat answer: told apart, started once their name is known, ended when the answer is."""

from collections.abc import Set

from msgspec import Raw, Struct
from msgspec.structs import replace

from translation.arguments import PLACEHOLDERS, Arguments
from translation.errors import UpstreamProtocolError
from translation.events import Event, Reason, ToolArguments, ToolDropped, ToolEnded, ToolStarted
from translation.names import meant
from translation.providers.openai_chat_state import EMPTY, State, write
from translation.providers.openai_chat_wire import Call, Function, arguments_of
from translation.unicode import json_string

WHOLE = ("stop", "tool_use")  # reasons after which every call is meant to be complete
WRITTEN = 1_000_000  # indexes from here on are of no call that came beside the text
NOBODY = ("null", "None")  # how some gateways write that a fragment has no name or id of its own


class _Call:
    """A tool call on its way in."""

    __slots__ = ("again", "arguments", "carried", "id", "name", "number", "pending", "started", "touched")

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = ""
        self.name = ""
        self.arguments = Arguments()
        self.pending = ""  # what may be shown once the call has started
        self.started = False
        self.touched = False  # some of its arguments came
        self.again = False  # its name came once more after them: of another call, if more follow
        self.carried: dict[str, Raw] = {}  # fields that go back with it


def _is_another(known: _Call, given: Call, name: str, said: str) -> bool:
    """Whether this begins a call that has another's index, and no id or the same: nothing follows whole arguments."""
    if not known.name:
        return False
    if name != known.name:
        return known.touched and known.arguments.complete
    if not known.arguments.over:
        return False
    return bool(said and not given.id) or (said[:1] == "{" and said != known.arguments.text.strip())


def _goes_on(known: _Call, given: Call, name: str, fragment: str) -> bool:
    """Whether this is what follows the name of another call of the same tool, at servers without ids and indexes."""
    return not (name or given.id) and fragment.lstrip()[:1] == "{" and known.arguments.over


def _is_rest(known: _Call, name: str, fragment: str) -> bool:
    """Whether this goes on with arguments that are not whole, whatever its id: some servers make one for each piece."""
    begins = fragment.lstrip()[:1] in ("", "{")
    return name in ("", known.name) and known.touched and not begins and not known.arguments.complete


class Calls(Struct, eq=False):
    _names: dict[str, str]  # the client's, by the upstream's
    _offered: Set[str] = frozenset()  # as the upstream knows them
    _calls: list[_Call] = []
    _by_index: dict[int, _Call] = {}
    _by_id: dict[str, _Call] = {}  # the first of each
    _shown: int = 0  # calls from the first on that have started
    _notes: list[str] = []
    _written: int = 0  # that came in the text

    def feed(self, given: Call, out: list[Event], *, whole: bool) -> None:
        """A fragment of a call, or the `whole` of it."""
        function = given.function or Function()
        fragment = arguments_of(function)
        name = function.name or ""
        if name in NOBODY and name not in self._offered:
            name = ""
        if given.id in NOBODY:
            given = replace(given, id=None)
        if not (given.id or name or fragment):
            self._carry(given)
            return  # how servers written in Go say that there is none
        call = self._new(given.index) if whole else self._of(given, name, fragment)
        if given.extra_content or given.provider_specific_fields or given.thought_signature:
            call.carried |= given.carried
        if given.id and not call.id:
            call.id = str(given.id)
            self._by_id.setdefault(call.id, call)
        if name:
            call.name = self._named(call, name)
        if fragment:
            call.touched = True
            call.pending += call.arguments.feed(fragment)
        elif name and call.touched:
            call.again = True
        if call.name and (call.pending or not call.started) and (call.touched or (call.id and self._is_whole(call))):
            self._start(call, out)

    def write(self, name: str, fragment: str, out: list[Event]) -> None:
        """A fragment of a call that came in the text. They come one after the other."""
        self._written += bool(name)
        function = Function(name or None, Raw(json_string(fragment)))
        self.feed(Call(WRITTEN + self._written, function=function), out, whole=False)

    def _carry(self, given: Call) -> None:
        """What comes after the call that it belongs to."""
        known = self._by_index.get(given.index) if given.index is not None else None
        for call in [known] if known else self._calls[-1:]:
            call.carried |= given.carried

    def _named(self, call: _Call, name: str) -> str:
        """A repeated name does not rename; the next piece of one does, until its arguments come."""
        if not call.name or call.touched or call.started:
            return call.name or name
        whole = call.name + name
        return whole if any(offered.startswith(whole) for offered in self._offered) else call.name

    def _is_whole(self, call: _Call) -> bool:
        """Whether no other tool's name goes on where this one ends."""
        return not any(name != call.name and name.startswith(call.name) for name in self._offered)

    def close(self, reason: Reason, state: State, out: list[Event]) -> tuple[str, ...]:
        """The answer is complete. Returns what had to be mended. The first call carries the message's state as well.

        No call ends before all have been read: what is wrong with one may be asked for again if none was shown.
        """
        ended = [(call, self._ended(call, reason)) for call in self._calls]
        for call, arguments in ended:
            if call.name:
                self._start(call, out)
                own = write(replace(state, call=call.carried) if call.carried else state)
                out.append(ToolEnded(call.number, arguments, own) if arguments else ToolDropped(call.number))
                state = EMPTY if arguments else state
        return tuple(self._notes)

    def _ended(self, call: _Call, reason: Reason) -> str:
        """Its arguments; "" where it was cut off."""
        if reason not in WHOLE and self._cut(call):
            return ""
        if not call.name:
            raise UpstreamProtocolError("the upstream called a tool without naming it")
        arguments, mended = call.arguments.close()
        if mended:
            self._notes.append(f"{call.name}: {mended}")
        return arguments

    @property
    def begun(self) -> bool:
        return bool(self._calls)

    def holds(self, given: Call) -> bool:
        """Whether this is nothing but a call that has come already, once more. What is not whole goes on: a piece of
        it may be anything."""
        function = given.function or Function()
        fragment = arguments_of(function).strip()
        named = given.id or function.name or given.index is not None
        return any(
            given.index is None or self._by_index.get(given.index) is call
            for call in (self._calls if named else self._calls[-1:])
            if str(given.id or "") in ("", call.id)
            and function.name in (None, "", call.name)
            and call.arguments.complete
            and fragment in (*PLACEHOLDERS, call.arguments.text.strip())
        )

    def _cut(self, call: _Call) -> bool:
        """Of the last call nothing may have come but its name; any other had its turn."""
        return not call.arguments.complete or (call is self._calls[-1] and not call.touched)

    def _of(self, given: Call, name: str, fragment: str) -> _Call:
        last = self._calls[-1] if self._calls else None
        known = last if given.index is None else self._by_index.get(given.index)
        if known is not None and known.again and _goes_on(known, given, name, fragment):
            return self._new(given.index, known.name)
        return self._find(given, name, fragment)

    def _find(self, given: Call, name: str, fragment: str) -> _Call:
        last = self._calls[-1] if self._calls else None
        if given.index is not None:
            known = self._by_index.get(given.index)
            # One index for all calls, each with its own id and name: some servers count that way.
            another = name and given.id and known is not None and known.id and str(given.id) != known.id
            if known is None or (another and not _is_rest(known, name, fragment)):
                return self._new(given.index)
            return self._new(given.index) if name and _is_another(known, given, name, fragment.strip()) else known
        if last is None:
            return self._new(None)
        if given.id and last.id:
            same = self._by_id.get(str(given.id)) or (last if _is_rest(last, name, fragment) else None)
            other = name and same is not None and same.name not in ("", name)
            if same is None or other or (name and _is_another(same, given, name, fragment.strip())):
                return self._new(None)
            return same
        another = name and last.name and (name != last.name or _is_another(last, given, name, fragment.strip()))
        return self._new(None) if another else last

    def _new(self, index: int | None, name: str = "") -> _Call:
        call = _Call(len(self._calls))
        call.name = name
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _start(self, call: _Call, out: list[Event]) -> None:
        if not call.started:
            for earlier in self._calls[self._shown : call.number]:
                named = earlier.name in self._offered or (earlier.name and self._is_whole(earlier))
                if named and not earlier.started:
                    self._start(earlier, out)  # it had nothing but its name: the order is the upstream's
            call.started = True
            while self._shown < len(self._calls) and self._calls[self._shown].started:
                self._shown += 1
            called = call.name if call.name in self._offered else self._meant(call.name)
            name = self._names.get(called, called)
            out.append(ToolStarted(call.number, name, upstream_id=call.id, upstream_name=called))
        if call.pending:
            out.append(ToolArguments(call.number, call.pending))
            call.pending = ""

    def _meant(self, name: str) -> str:
        """A client's own name of a tool that has an alias is no riddle."""
        found = "" if name in self._names.values() else meant(name, self._offered)
        if found:
            self._notes.append(f"{found}: the upstream called it {name!r}")
        return found or name
