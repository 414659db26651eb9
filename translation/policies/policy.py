"""What a route may decide about the rules: which profile, which of them on or off, and the texts that they use."""

from typing import Literal

from msgspec import Struct

ProfileName = Literal["agentic", "conservative"]

GUARDRAIL = (
    "If history already contains a matching tool response for identical arguments, don't repeat the same tool call "
    "unless the user explicitly asks to refresh."
)
READ_CUES = ("read", "readme", "explain", "summary", "summarize", "summarise", "解释", "总结")
# The first four are the seed's; the others make sure that a text *only* asks to read.
# fmt: off
WRITE_CUES = (
    "edit", "update", "修改", "写", "write", "create", "add", "fix", "change", "delete", "remove", "rename", "replace",
    "implement", "refactor", "commit", "install", "run", "更新", "创建", "删除", "添加", "修复", "实现", "运行",
)
# fmt: on
READ_ONLY_TOOLS = ("Glob", "Read", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch")


class Policy(Struct, frozen=True):
    """A route's policies. `switches` holds (name of a rule, on or off) where it differs from the profile."""

    name: ProfileName = "agentic"
    switches: tuple[tuple[str, bool], ...] = ()
    guardrail: str = GUARDRAIL
    read_cues: tuple[str, ...] = READ_CUES
    write_cues: tuple[str, ...] = WRITE_CUES
    read_only_tools: tuple[str, ...] = READ_ONLY_TOOLS
    guidance: str = ""
    flag_at: int = 3  # equal calls with equal results
    remind_at: int = 5
