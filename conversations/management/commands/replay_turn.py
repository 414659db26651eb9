"""`manage.py replay_turn ID [--target provider/model]`: run a stored turn again and compare the two answers."""

from difflib import unified_diff
from getpass import getuser

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q

from conversations import replay, wording
from conversations.answered import answer
from conversations.comparison import Comparison, compare
from conversations.models import Turn
from translation.errors import BridgeError


class Command(BaseCommand):
    help = "Run a stored turn again, byte for byte or through another model, and compare. No tool is run."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("turn", help="request id (req_…), message id (msg_…) or primary key")
        parser.add_argument("--target", default="", help="provider/model, or any name that clients may ask for")
        parser.add_argument("--cost", action="store_true", help="only show what it is expected to cost")

    def handle(self, *args: object, turn: str, target: str, cost: bool, **_: object) -> None:
        found = _turn(turn)
        try:
            self._say_cost(found, target)
            if cost:
                return
            row = replay.run_alone(found, target, f"{getuser()} (command)")
        except BridgeError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"stored as replay {row.pk}, {'byte for byte' if row.exact else 'made anew'}\n")
        self.stdout.write(wording.harmless(report(compare(found, answer(found), row))))

    def _say_cost(self, turn: Turn, target: str) -> None:
        means = replay.means()
        planned = replay.plan(turn, means.router, target)
        likely = replay.expected(planned, turn, means)
        means.estimates.tokenizer.stop()
        words = f"about {wording.money(likely.micros)}, at most {wording.money(likely.most_micros)}"
        self.stdout.write(f"{planned.route.name}: {wording.count(likely.input_tokens)} tokens in, {words}")


def _turn(name: str) -> Turn:
    named = Q(request_id=name) | Q(message_id=name)
    if name.isdecimal() and len(name) < 19:
        named |= Q(pk=int(name))
    found = Turn.objects.select_related("conversation").filter(named, conversation__ended_at=None).first()
    if found is None:
        raise CommandError(f"no turn is known as {name}")
    return found


def report(compared: Comparison) -> str:
    before, after = compared.before, compared.after
    lines = [f"{'':14} {before.title:>24} {after.title:>24}"]
    pairs = [("model", before.model, after.model), ("status", before.status, after.status),
             ("stop reason", before.stop_reason, after.stop_reason)]  # fmt: skip
    pairs += [(figure.name.lower(), figure.before, figure.after) for figure in compared.figures]
    lines += [f"{name:14} {one:>24} {other:>24}" for name, one, other in pairs]
    lines += [f"{side.title.lower()} failed: {side.error}" for side in (before, after) if side.error]
    for number, pair in enumerate(compared.calls, 1):
        names = " / ".join(call.name for call in (pair.before, pair.after) if call is not None)
        lines.append(f"call {number}: {names}: {pair.verdict}")
    one, other = before.text.splitlines(), after.text.splitlines()
    difference = list(unified_diff(one, other, before.title.lower(), after.title.lower(), lineterm=""))
    return "\n".join([*lines, "", *(difference or ["The texts are the same."]), ""])
