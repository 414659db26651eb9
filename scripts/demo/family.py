"""A session of Claude Code: a main loop that starts sub-agents, which work at the same time."""

import uuid
from concurrent.futures import ThreadPoolExecutor

from scripts.demo.session import Session, answered, use
from scripts.demo.upstream import Line

PARTS = ("front end", "API", "database")


def family(session: Session, n: int) -> None:
    number = str(uuid.UUID(int=session.chance.getrandbits(128), version=4))
    session.headers = {"x-claude-code-session-id": number}
    tasks = [
        use("Task", description=f"Review the {part}", prompt=f"Review the {part} of release {n}.") for part in PARTS
    ]
    said = f"{session.opening} Review release {n}. Use sub-agents for its parts."
    calls = session.ask(said, Line("Three reviews at once.", tuple(tasks)))
    if not calls:
        return
    with ThreadPoolExecutor(len(PARTS)) as pool:
        found = list(pool.map(lambda part: _agent(session, n, part), range(len(PARTS))))
    results = [answered(call, result) for call, result in zip(calls, found, strict=True)]
    session.ask(results, Line("The release is good; the API needs one more index."))


def _agent(main: Session, n: int, part: int, parent: str = "") -> str:
    name = f"agent-{PARTS[part].replace(' ', '-')}" + ("-deep" if parent else "")
    opening = f"{main.opening} {name}:"
    agent = Session(main.client, main.cast, opening, main.model, main.tempo)
    agent.headers = main.headers | {"x-claude-code-agent-id": name}
    if parent:
        agent.headers["x-claude-code-parent-agent-id"] = parent
    path = f"services/{PARTS[part].split()[0].lower()}"
    first = (
        Line("", (use("Grep", pattern="TODO", path=path), use("Bash", command=f"ls {path}"))),
        ("3 matches", "a\nb"),
    )
    if part == 1 and not parent:
        calls = agent.ask(
            f"{opening} Review it.", Line("", (use("Task", description="Check the indexes", prompt="Check."),))
        )
        if calls:
            deep = _agent(main, n, part, name)
            agent.ask([answered(calls[0], deep)], Line("One index is missing."))
        return "One index is missing."
    agent.work(f"{opening} Review it.", first, (Line(f"The {PARTS[part]} is fine."), ()))
    return f"The {PARTS[part]} is fine."
