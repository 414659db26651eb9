"""What an upstream's error says, in any of the OpenAI family's shapes, as the error that the client sees.

{"error": {"message", "type", "param", "code"}}      OpenAI and most others; OpenRouter has more in "metadata"
{"error": "text"}                                    Ollama, xAI (with "code" beside it)
{"object": "error", "message", "type", "code"}       Mistral, older vLLM; "message" may be a list of details
{"detail": [{"loc", "msg"}]} or {"detail": "text"}   FastAPI
{"errors": [{"message", "code"}]}                    Cloudflare
{"msg", "code"}                                      many gateways
{"error_msg", "error_code"}                          Baidu
{"Response": {"Error": {"Message", "Code"}}}         Tencent; its gateways without the outer object
{"base_resp": {"status_code", "status_msg"}}         MiniMax
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from translation.errors import (
    BridgeError,
    TooLarge,
    UpstreamFailed,
    UpstreamKeyRefused,
    UpstreamModelMissing,
    UpstreamOverloaded,
    UpstreamQuotaSpent,
    UpstreamRateLimited,
    UpstreamRefused,
    UpstreamTimeout,
)
from translation.overflow import overflow
from translation.unreadable import UNREADABLE

KEY = re.compile(r"(?i)\b(?:incorrect|invalid) api key|api key not valid")  # xAI says this with 400
# MiniMax's own codes, which come inside a 200, as the statuses that others use.
MINIMAX = {"1002": "429", "1004": "401", "1008": "402", "1039": "429", "2013": "400", "2049": "401"}
# Baidu's, as ai.baidu.com/ai-doc/WENXINWORKSHOP/tlmyncueh has them.
BAIDU = {"2": "503", "4": "429", "17": "429", "18": "429", "19": "429", "336003": "400", "336103": "400"}
BAIDU |= dict.fromkeys(("6", "13", "14", "100", "110", "111"), "401")
STATUS = re.compile("[45][0-9]{2}")
LONGEST = 2000  # characters of an upstream's message that are passed on
# `Please retry in 36.5s.` (Google), `Please try again in 6m0s.`, `... in 228ms` (OpenAI), `... after 9 seconds` (Azure)
WAIT = re.compile(r"(?i)\b(?:retry|try again) (?:in|after) (?:([0-9]{1,4})m)?([0-9]{1,6}(?:\.[0-9]{1,9})?) ?(ms|s)")
DELAY = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?)s")  # of Google's `RetryInfo`


class Complaint(msgspec.Struct, frozen=True):
    message: str
    type: str = ""
    param: str = ""
    code: str = ""
    wait: float | None = None  # seconds, where the error itself says how long

    @property
    def status(self) -> int:
        """The one that its code is; 0 where that is none."""
        return int(self.code) if STATUS.fullmatch(self.code) else 0

    @property
    def sentence(self) -> str:
        parts = [self.message[:LONGEST]]
        if self.param:
            parts.append(f"(Param: {self.param})")
        if self.type:
            parts.append(f"(Type: {self.type})")
        return " ".join(parts)


def refusal(status: int, headers: dict[str, str], body: bytes) -> BridgeError:
    """The error for an answer that is not 2xx."""
    return fault(status, heard(status, body), retry_after(headers))


def heard(status: int, body: bytes) -> Complaint:
    """What such an answer says. A gateway's HTML page is never shown, and plain words only of who refuses: xAI says so
    what is wrong with a request."""
    words = _plain(body) if 400 <= status < 500 else ""
    return read(body) or Complaint(words or f"the upstream answered {status} without a readable error")


def cried(data: bytes) -> Complaint:
    """What an `error` event says, in any of those shapes or in plain words."""
    return read(data) or Complaint(_plain(data) or "the upstream ended its stream with an error")


def _plain(body: bytes) -> str:
    try:
        text = body.decode().strip()
    except UnicodeDecodeError:
        return ""
    return "" if text[:1] in ("<", "{", "[") else text[:LONGEST]


def in_band(complaint: Complaint) -> BridgeError:
    """The error for one that came inside a 200: by its code, else by its type."""
    status = complaint.status
    if not status:
        word = f"{complaint.type} {complaint.code}".lower()
        status = next((number for sign, number in SIGNS if sign in word), 500)
    return fault(status, complaint, None)


SIGNS = (  # in an error's type or code
    ("invalid_api_key", 401),
    ("rate_limit", 429),
    ("insufficient_quota", 429),
    ("overloaded", 529),
    ("slow_down", 503),
    ("unavailable", 503),
    ("timeout", 504),
    ("authentication", 401),
    ("authfailure", 401),
    ("requestlimitexceeded", 429),
    ("permission", 403),
    ("model_not_found", 404),
    ("not_found", 404),
    ("context_length", 400),
    ("content_filter", 400),
    ("cyber_policy", 400),
    ("bio_policy", 400),
    ("exceed_context", 400),
    ("invalid_request", 400),
    ("badrequest", 400),
    ("bad_request", 400),
)


# By the HTTP status, at every provider. Of the others that begin with 4 the request is to blame.
FAULTS: dict[int, type[BridgeError]] = {
    401: UpstreamKeyRefused,
    402: UpstreamKeyRefused,
    403: UpstreamKeyRefused,
    404: UpstreamModelMissing,
    408: UpstreamTimeout,
    413: TooLarge,
    424: UpstreamFailed,  # text-generation-inference: what broke while it answered
    425: UpstreamFailed,
    429: UpstreamRateLimited,
    499: UpstreamFailed,  # Google gives up on answers under load, and calls them cancelled
    503: UpstreamOverloaded,
    504: UpstreamTimeout,
    529: UpstreamOverloaded,
}


def meant(status: int) -> type[BridgeError]:
    return FAULTS.get(status, UpstreamRefused if 400 <= status < 500 else UpstreamFailed)


SPENT = ("insufficient_quota", "exceeded_current_quota_error")  # OpenAI's word and Kimi's, as type or code
PREFIXES = dict.fromkeys((401, 402, 403), "the bridge's upstream key was refused: ")


def fault(status: int, complaint: Complaint, wait: float | None) -> BridgeError:
    wait = complaint.wait if wait is None else wait
    if status == 400 and KEY.search(complaint.message):
        status = 401
    if status in (400, 413, 422, 500):
        too_long = overflow(complaint.message, complaint.code) or overflow(complaint.message, complaint.type)
        if too_long:
            return too_long
    if status == 429 and (complaint.type in SPENT or complaint.code in SPENT):
        return UpstreamQuotaSpent(complaint.sentence, retry_after=wait)
    return meant(status)(PREFIXES.get(status, "") + complaint.sentence, retry_after=wait)


def retry_after(headers: dict[str, str]) -> float | None:
    """Seconds; of a moment that is named, those after the answer's own `date`."""
    lowered = {name.lower(): value.strip() for name, value in headers.items()}
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = lowered.get(name, "")
        if value.isascii() and value.replace(".", "", 1).isdigit():
            return float(value) * scale
    moment, now = _moment(lowered.get("retry-after", "")), _moment(lowered.get("date", ""))
    return max(0.0, (moment - now).total_seconds()) if moment and now else None


def _moment(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def read(body: bytes) -> Complaint | None:
    """None when there is no error in it that could be read."""
    try:
        value = msgspec.json.decode(body)
    except UNREADABLE:
        return None
    if isinstance(value, list) and value:
        value = value[0]  # Gemini's own compatibility layer
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("Response"), dict):
        value = value["Response"]
    given = (value[name] for name in ("error", "Error") if value.get(name) is not None)
    error = next(given, _first(value.get("errors")))
    if isinstance(error, list):
        error = _first(error)
    if isinstance(error, dict):
        return _complaint(error)
    if isinstance(error, str) and error:
        return Complaint(error, type=_word(value.get("type")), code=_word(value.get("code")))
    if error is True or value.get("object") == "error" or not value.keys().isdisjoint(("detail", "message", "msg")):
        return _complaint(value)
    return _baidu(value) or _minimax(value.get("base_resp"))


def _first(errors: object) -> object:
    return errors[0] if isinstance(errors, list) and errors else None


def _baidu(said: dict[str, Any]) -> Complaint | None:
    code = _word(said.get("error_code"))
    return Complaint(str(said["error_msg"]), code=BAIDU.get(code, code)) if said.get("error_msg") else None


def _minimax(said: object) -> Complaint | None:
    if not isinstance(said, dict) or not said.get("status_code"):
        return None
    message = str(said.get("status_msg") or "the upstream gave no message")
    return Complaint(message, code=MINIMAX.get(_word(said["status_code"]), "500"))


def _complaint(error: dict[str, Any]) -> Complaint:
    given = (error[name] for name in ("message", "Message", "detail", "msg") if error.get(name))
    message = next(given, "the upstream gave no message")
    words, param = _details(message)
    inner = _passed_on(error.get("metadata"))
    words = f"{words}: {inner}" if inner else words
    code = _word(error.get("code", error.get("Code")))
    wait = told_to_wait(words, _delays(error.get("details")))
    return Complaint(words, _word(error.get("type")), _word(error.get("param")) or param, code, wait)


def _delays(details: object) -> list[str]:
    found = [item for item in details if isinstance(item, dict)] if isinstance(details, list) else []
    return [str(item["retryDelay"]) for item in found if "retryDelay" in item]


def told_to_wait(message: str, delays: Iterable[str] = ()) -> float | None:
    """How long, by the error itself: Google sends no `retry-after`, and gateways lose OpenAI's."""
    if (delay := next(filter(None, map(DELAY.fullmatch, delays)), None)) is not None:
        return float(delay[1])
    if (found := WAIT.search(message)) is None:
        return None
    return int(found[1] or 0) * 60 + float(found[2]) * (0.001 if found[3] == "ms" else 1)


def _passed_on(metadata: object) -> str:
    """What the provider behind OpenRouter said, which itself says only `Provider returned error`."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    text = raw if isinstance(raw, str) else msgspec.json.encode(raw).decode() if isinstance(raw, dict) else ""
    complaint = read(text.encode("utf-8", "surrogatepass"))
    return complaint.message if complaint else "" if text.lstrip()[:1] in ("<", "{", "[") else text


def _details(message: object) -> tuple[str, str]:
    """FastAPI's list of what was wrong, wherever it sits: its words, and the first field that it names."""
    if isinstance(message, dict):
        return _details(message.get("detail") or msgspec.json.encode(message).decode())
    if not isinstance(message, list):
        return str(message), ""
    found = [item for item in message if isinstance(item, dict)]
    places = [".".join(str(step) for step in item.get("loc", ())) for item in found]
    words = "; ".join(f"{place}: {item.get('msg', '')}" for place, item in zip(places, found, strict=True))
    return words or str(message), places[0].removeprefix("body.") if places else ""


def _word(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
