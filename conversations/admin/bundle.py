"""A bug report of one turn: every hop, without what was said. Pure but for the archive's bytes."""

import io
import zipfile

import msgspec

from conversations.admin import redaction
from conversations.admin.hops import Attempt, Hop
from conversations.admin.toolchain import notes
from conversations.models import Turn

ABOUT = """A turn of Toolbridge, for a bug report.

Content is taken out: every text is replaced by its length, strings that look like secrets by [secret]. Structure, ids,
names, models, sizes and times are as they were.

  turn.json        what happened: status, models, attempts, notes, usage, timings
  received.json    the client's request, in the form that it is stored in
  sent.json        the request that went upstream
  answered.txt     the upstream's raw answer (sent-2, answered-2: after the bridge had run its own tools)
  delivered.json   the answer that the client got
"""


def bundle(turn: Turn, hops: tuple[Hop, ...], attempts: tuple[Attempt, ...]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        files.writestr("README.txt", ABOUT)
        files.writestr("turn.json", msgspec.json.format(msgspec.json.encode(_turn(turn, attempts)), indent=2))
        for hop in hops:
            name = f"{hop.name}.txt" if hop.name.startswith("answered") else f"{hop.name}.json"
            files.writestr(name, redaction.json(hop.raw) if hop.raw else b"")
    return archive.getvalue()


def _turn(turn: Turn, attempts: tuple[Attempt, ...]) -> dict[str, object]:
    plain = (
        "request_id", "message_id", "status", "requested_model", "stream", "upstream", "resolved_model",
        "returned_model", "stop_reason", "http_status", "error_type", "input_tokens", "output_tokens", "cache_read",
        "cache_write", "thinking_tokens", "usage_estimated", "tool_count", "state_ms", "first_byte_ms",
        "first_token_ms", "duration_ms",
    )  # fmt: skip
    return {name: getattr(turn, name) for name in plain} | {
        "started_at": turn.started_at,
        "error_message": redaction.secrets(turn.error_message),
        "attempts": [{"target": one.path, "status": one.status, "ms": one.ms} for one in attempts],
        "notes": [{"kind": note.kind, "rule": note.rule, "message": note.message} for note in notes(bytes(turn.notes))],
    }
