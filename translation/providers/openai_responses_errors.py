"""Errors of the Responses API, as HTTP answers and in the middle of a stream: the family's, and a rejected blob."""

import re

from msgspec.structs import replace

from translation import refusals
from translation.errors import OPAQUE_STATE_REJECTED, BridgeError, UpstreamRefused
from translation.refusals import Complaint

BLOB = re.compile(
    r"(?i)compaction blob|encrypted[_ ]content.*(?:could not be|decrypt)|dec(?:rypt|ode).*encrypted_content"
    r"|was provided without its required (?:following item|'reasoning' item)|duplicate item found with id"
    r"|items are not persisted when"
)
POLICIES = ("cyber_policy", "bio_policy")  # a classifier's word: not retried, and no fault of anybody's
CLIENTS = (
    *POLICIES,
    "invalid_prompt",
    "invalid_",
    "image_",
    "unsupported_image",
    "empty_image",
    "failed_to_download_image",
)


def refusal(status: int, headers: dict[str, str], body: bytes) -> BridgeError:
    """An answer that is not 2xx."""
    complaint = refusals.read(body)
    if complaint is not None and status < 500 and _is_blob(complaint):
        return _rejected(complaint)
    return refusals.refusal(status, headers, body)


def in_band(complaint: Complaint) -> BridgeError:
    """In a stream the status line is gone: the code tells."""
    if complaint.type == "error":  # that is the event's own type
        complaint = replace(complaint, type="")
    if _is_blob(complaint):
        return _rejected(complaint)
    if complaint.code.startswith(CLIENTS):
        return UpstreamRefused(complaint.sentence)
    return refusals.in_band(complaint)


def _is_blob(complaint: Complaint) -> bool:
    return complaint.code == "invalid_encrypted_content" or bool(BLOB.search(complaint.message))


def _rejected(complaint: Complaint) -> BridgeError:
    return UpstreamRefused(complaint.sentence, code=OPAQUE_STATE_REJECTED)
