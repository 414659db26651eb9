"""What happens in the demo's conversations, the good and the bad. Each story is a function of a session."""

import base64
import json
import struct
import zlib
from typing import Any

from scripts.demo.family import family
from scripts.demo.session import Failed, Session, Story, answered, use
from scripts.demo.upstream import Line

SERVICES = ("billing", "checkout", "search", "inventory", "accounts", "shipping", "reviews", "catalog")
BUGS = (
    ("rounds prices down", "test_half_cents_round_up", "ROUND_DOWN", "ROUND_HALF_UP"),
    ("forgets the time zone", "test_orders_after_midnight", "datetime.now()", "datetime.now(UTC)"),
    ("loses the last page", "test_the_last_page_is_there", "range(1, pages)", "range(1, pages + 1)"),
    ("retries without a limit", "test_retries_end", "while True:", "for _ in range(3):"),
    ("accepts expired coupons", "test_expired_coupons", "expires >= today", "expires > today"),
)
THOUGHTS = (
    "The failing test names the behaviour; the code that decides it should be near. I look before I change anything.",
    "Two files matter here. Reading both at once is cheaper than one after the other.",
    "The change is one line. I make it, run the tests, and look at nothing else.",
)


def picture(width: int = 320, height: int = 160, seed: int = 1) -> str:
    """A small PNG, as Base64: stripes that stand for a page."""
    rows = b"".join(
        b"\0" + bytes(v for x in range(width) for v in _colour(x, y, seed)) for y in range(height)
    )  # fmt: skip

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(png).decode()


def _colour(x: int, y: int, seed: int) -> tuple[int, int, int]:
    if y < 22:
        return (30, 58, 138)
    if x < 70:
        return (226, 232, 240)
    card = (x // 62 + y // 46 + seed) % 3
    edge = x % 62 < 4 or y % 46 < 4
    return (248, 250, 252) if edge else ((191, 219, 254), (187, 247, 208), (254, 215, 170))[card]


def image(seed: int) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture(seed=seed)}}


def source(service: str, number: int, lines: int = 60) -> str:
    body = [f"def step_{n}(order: Order) -> Order:\n    return order.with_note({n * number!r})\n" for n in range(lines)]
    return f'"""services/{service}/core.py"""\n\nfrom shop import Order\n\n\n' + "\n\n".join(body)


def healthy(session: Session, n: int) -> None:
    """Search, read two files at once, change one, run the tests, report."""
    service, (bug, test, old, new) = SERVICES[n % 8], BUGS[n % 5]
    core, tests = f"services/{service}/core.py", f"services/{service}/tests/test_core.py"
    session.work(
        f"{session.opening} The {service} service {bug}: {test} fails. Please fix it.",
        (Line("I look for the code first.", (use("Grep", pattern=old, path=f"services/{service}"),), THOUGHTS[0]),
         (f"{core}:41: {old}\n{tests}:12: {test}",)),
        (Line("", (use("Read", path=core), use("Read", path=tests, limit=80)), THOUGHTS[1]),
         (source(service, n), f"def {test}():\n    assert total(order) == expected\n")),
        (Line("One line is wrong.", (use("Edit", path=core, old=old, new=new),), THOUGHTS[2]), ("1 replacement",)),
        (Line("", (use("Bash", command=f"pytest -q services/{service}"),)), (f"{20 + n % 30} passed in 3.4s",)),
        (Line(f"Fixed: `{old}` is now `{new}` in {core}, and all tests of the {service} service pass."), ()),
    )  # fmt: skip
    if n % 3 == 0 and session.history:
        session.ask("Thanks. Write the line for the changelog, too.", Line(f"- {service}: no longer {bug}."))


def talk(session: Session, n: int) -> None:
    """No tools at all."""
    session.fields = {"max_tokens": 1024}
    topics = ("What is a prefix tree good for?", "How do I undo my last commit?", "Why is SQLite in WAL mode faster?")
    answers = (
        "It stores keys that share beginnings once: lookups cost the length of the key, not the size of the set.",
        "`git reset --soft HEAD~1` takes the commit back and keeps its changes staged.",
        "Readers and the writer do not wait for each other, and a commit is one append to the log.",
    )
    session.ask(f"{session.opening} {topics[n % 3]}", Line(answers[n % 3], thought="A short answer is enough."))
    if session.history:
        session.ask("And in one sentence for a beginner?", Line("It saves work by sharing what is the same."))


def loop(session: Session, n: int) -> None:
    """The same command with the same outcome, again and again."""
    service = SERVICES[n % 8]
    step = (
        Line("Let me run the tests again.", (use("Bash", command=f"make test SERVICE={service}"),), THOUGHTS[2]),
        (Failed("make: *** No rule to make target 'test'.  Stop."),),
    )
    end = (Line("The target `test` does not exist; I cannot run the tests this way."), ())
    session.work(f"{session.opening} Make the tests of {service} green.", *([step] * (5 + n % 4)), end)


def interrupted(session: Session, n: int) -> None:
    """The user presses Escape: in a text, or while a tool runs; then goes on."""
    service = SERVICES[n % 8]
    if n % 2:
        text = f"The {service} service has four layers. " + "The first one takes requests and checks them. " * 12
        session.leave(f"{session.opening} Explain the {service} service.", Line(text, thought=THOUGHTS[0], hang=True))
        session.history.append({"role": "assistant", "content": "The service has four layers."})
        session.ask("Shorter, please.", Line("Requests, rules, storage, events."))
        return
    command = use("Bash", command=f"docker compose up {service}")
    session.ask(f"{session.opening} Start {service} and look at its log.", Line("I start it.", (command,)))
    session.pause(0.1, 0.3)
    # The call has no result: the bridge has to invent one that the model understands.
    session.ask("Stop, use the staging system instead.", Line("", (use("WebFetch", url="https://staging.test/log"),)))


def failing(session: Session, n: int) -> None:
    """The upstream is down, limited, overflowing, or breaks off."""
    said = f"{session.opening} Summarise the open orders."
    match n % 4:
        case 0:
            session.ask(said, *[Line(status=500, message="The server had an error while processing your request")] * 3)
        case 1:
            session.ask(said, Line(status=429, message="Rate limit reached for requests per minute"),
                        *[Line(status=429, message="Rate limit reached for requests per minute")] * 2)  # fmt: skip
        case 2:
            too_long = "This model's maximum context length is 128000 tokens. However, your messages resulted in 140313"
            session.ask(said, Line(status=400, message=too_long))
        case _:
            session.ask(said, Line("There are 41 open orders, most of them from the last two days. " * 6, cut=True))


def recovering(session: Session, n: int) -> None:
    """The first attempt fails, the second works."""
    session.cast.expect(session.opening, Line(status=503, message="The engine is currently overloaded"))
    healthy(session, n)


def waiting(session: Session, n: int) -> None:
    """A call whose result never comes."""
    command = use("Bash", command=f"terraform apply -target=module.{SERVICES[n % 8]}")
    session.ask(f"{session.opening} Roll the {SERVICES[n % 8]} service out.", Line("I apply the plan.", (command,)))


def pictures(session: Session, n: int) -> None:
    """A picture from the user, and one from a tool."""
    shown = [{"type": "text", "text": f"{session.opening} This page looks wrong on phones."}, image(n)]
    page = "/" + SERVICES[n % 8]
    session.work(
        shown,
        (Line("I look at it myself.", (use("Screenshot", page=page),), THOUGHTS[0]),
         ([{"type": "text", "text": "390 × 844"}, image(n + 1)],)),
        (Line("The grid has fixed columns; `auto-fit` lets them wrap.",
              (use("Edit", path="web/grid.css", old="repeat(4, 1fr)", new="repeat(auto-fit, minmax(9rem, 1fr))"),)),
         ("1 replacement",)),
        (Line("The cards wrap now at every width."), ()),
    )  # fmt: skip


def thinking(session: Session, n: int) -> None:
    """Long thoughts, which their provider wants back."""
    session.fields |= {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    service = SERVICES[n % 8]
    thought = f"What could make {service} slow? Queries in a loop, a lock, or a cold cache. " * 6
    session.work(
        f"{session.opening} Why is {service} slow in the morning?",
        (Line("", (use("Bash", command=f"grep -c SELECT logs/{service}.log"),), thought), ("184,220",)),
        (Line("", (use("Grep", pattern="for order in", path=f"services/{service}"),), thought[:200]),
         (f"services/{service}/report.py:88: for order in orders: order.customer.name",)),
        (Line("One query per order: `select_related('customer')` makes it one for all.", thought=thought[:150]), ()),
    )  # fmt: skip


def repaired(session: Session, n: int) -> None:
    """A client that loses, cuts or repeats parts of its history."""
    healthy(session, n)
    if len(session.history) < 6:
        return
    match n % 3:
        case 0:  # compacted: its first messages became a summary
            session.history = [{"role": "user", "content": f"{session.opening} Summary: the bug is fixed."}]
            session.history.append({"role": "assistant", "content": "Understood."})
        case 1:  # the last result is gone
            session.history = [
                message for message in session.history
                if not (message["role"] == "user" and "passed in" in json.dumps(message))
            ]  # fmt: skip
        case _:  # everything twice
            session.history = [*session.history, *session.history[-2:]]
    session.ask("Is there anything else to do?", Line("No: the tests pass and the changelog is written."))


def stubborn(session: Session, n: int) -> None:
    """A tool that keeps failing in different ways."""
    places = [f"services/{SERVICES[(n + k) % 8]}/settings.toml" for k in range(4)]
    steps = [
        (Line("", (use("Read", path=place),), THOUGHTS[0]), (Failed(f"ENOENT: no such file: {place}"),))
        for place in places
    ]
    session.work(f"{session.opening} Which port does the service use?", *steps, (Line("I could not find it."), ()))


def heavy(session: Session, n: int) -> None:
    """One result that fills the context."""
    log = "\n".join(
        f"2026-11-16T0{k % 10}:12:{k % 60:02d}Z order={k} state=paid amount={k * 7 % 991}" for k in range(1600)
    )
    session.work(
        f"{session.opening} Which orders failed last night?",
        (Line("", (use("Bash", command="cat logs/orders.log"),)), (log,)),
        (Line("", (use("Grep", pattern="state=failed", path="logs"), use("Bash", command="wc -l logs/orders.log"))),
         ("no matches", "1600 logs/orders.log")),
        (Line("None: all 1,600 orders of the night are paid."), ()),
    )  # fmt: skip


def switching(session: Session, n: int) -> None:
    """Another provider takes over in the middle of the chain."""
    first, others = session.model, ("openai/gpt-5.1", "gemini/gemini-3-pro", "deepseek/deepseek-reasoner")
    calls = session.ask(
        f"{session.opening} Compare the {SERVICES[n % 8]} and {SERVICES[(n + 1) % 8]} services.",
        Line("", (use("Read", path="services/a/core.py"), use("Read", path="services/b/core.py")), THOUGHTS[1]),
    )
    session.model = next(name for name in others if name != first)
    if calls:
        results = [answered(call, source("a", n, 12)) for call in calls]
        session.ask(results, Line("They are the same but for their names.", thought=THOUGHTS[0]))


def appending(session: Session, n: int) -> None:
    """A client that sends only what is new, and names its conversation."""
    session.headers = {"x-conversation-id": f"ticket-{4100 + n}", "x-conversation-mode": "append"}
    session.ask(f"{session.opening} A customer asks for a refund.", Line("Which order is it about?"))
    for said, answer in (("It is order 8841.", "It was paid on Monday; a refund is possible."), ("Do it.", "Done.")):
        session.history = []
        session.ask(said, Line(answer))


def hosted(session: Session, n: int) -> None:
    """Tools that the bridge runs itself."""
    session.stream = False
    session.fields = {"max_tokens": 1024}
    name, argument, value = ("stock", "sku", f"SKU-{n:04d}") if n % 3 else ("carrier", "parcel", f"P{n:06d}")
    session.ask(
        f"{session.opening} Can we ship {value} today?",
        Line("", (use(name, **{argument: value}),), THOUGHTS[0]),
        Line("Yes: it is in stock in Rotterdam." if n % 3 else "The carrier does not answer; please try again later."),
    )


def marathon(session: Session, n: int) -> None:
    """A long night: many turns, many calls at once."""
    steps = []
    for k in range(40):
        reads = tuple(use("Read", path=f"services/{SERVICES[(k + j) % 8]}/step_{k}.py") for j in range(1 + k % 5))
        given: list[Any] = [f"# step {k}\n" + source(SERVICES[k % 8], k, 3) for _ in reads]
        if k % 7 == 3:
            given[0] = Failed("EACCES: permission denied")
        steps.append((Line(f"Step {k + 1} of 40." if k % 4 == 0 else "", reads, THOUGHTS[k % 3]), tuple(given)))
    session.work(f"{session.opening} Move every service to the new Order type.", *steps, (Line("All are moved."), ()))


# How often each is told, beyond once.
STORIES: dict[str, tuple[Story, int]] = {
    "marathon": (marathon, 0), "healthy": (healthy, 8), "talk": (talk, 3), "loop": (loop, 1),
    "interrupted": (interrupted, 2), "failing": (failing, 2), "recovering": (recovering, 1), "waiting": (waiting, 1),
    "pictures": (pictures, 1), "thinking": (thinking, 2), "repaired": (repaired, 2), "stubborn": (stubborn, 1),
    "heavy": (heavy, 1), "switching": (switching, 1), "appending": (appending, 1), "hosted": (hosted, 1),
    "agents": (family, 1),
}  # fmt: skip
