"""The README's table of upstreams, written from their profiles: `make upstreams`.

tests/test_readme.py fails while the README does not hold exactly this table.
"""

from pathlib import Path

from translation.providers.profile import Profile
from translation.providers.profiles import PROFILES

PROJECT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- upstreams: written by scripts/upstreams.py -->\n", "<!-- end of upstreams -->\n"
COLUMNS = (
    "upstream",
    "prefix",
    "settings",
    "bare names",
    "images",
    "PDF",
    "effort",
    "reasoning it gets back",
    "forced tool",
    "structured output",
    "web search",
)
# What a dialect does for all of its models, whatever their profile says.
EFFORT = {"gemini": "thinking budget or level", "anthropic": "as asked"}
STATE = {
    "gemini": "thought signatures",
    "anthropic": "its own signatures",
    "openai_responses": "encrypted items",
}
WHEN = {"never": "", "tool_turns": " in tool turns", "always": ""}
STRUCTURED = {"json_schema": "JSON Schema", "json_object": "JSON object", "none": "no"}


def table() -> str:
    rows = [COLUMNS, ("---",) * len(COLUMNS), *(row(profile) for profile in PROFILES.values())]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def row(profile: Profile) -> tuple[str, ...]:
    return (
        profile.title,
        f"`{profile.provider}/`",
        settings(profile),
        ", ".join(f"`{name}`" for name in profile.families) or "-",
        images(profile),
        "text only" if profile.documents == "text" else "native",
        EFFORT.get(profile.dialect) or (f"`{profile.effort_field}`" if profile.effort_field else "-"),
        state(profile),
        forced(profile),
        STRUCTURED[profile.structured],
        profile.web_search or "-",
    )


def settings(profile: Profile) -> str:
    """The stem of its environment variables; one without a default address needs that, not only a key."""
    if profile.provider == "demo":
        return "always there"
    stem = (profile.shares or profile.provider).upper().replace("-", "_")
    return f"`{stem}_*`" if profile.base_url else f"`{stem}_*`, with its URL"


def forced(profile: Profile) -> str:
    if "tool" not in profile.tool_choices:
        return "no"
    return "yes" if profile.forced_while_thinking else "not while thinking"


def images(profile: Profile) -> str:
    if not profile.images:
        return "no"
    return "yes" if profile.image_urls else "base64 only"


def state(profile: Profile) -> str:
    if known := STATE.get(profile.dialect):
        return known
    if profile.replay_reasoning == "never":
        return "-"
    return f"`{profile.reasoning_field}`{WHEN[profile.replay_reasoning]}"


def written(readme: str) -> str:
    """The README with the table as it is now."""
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit("README.md has lost the marks around its table of upstreams")
    return f"{head}{BEGIN}{table()}{END}{tail}"


if __name__ == "__main__":
    path = PROJECT / "README.md"
    path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
