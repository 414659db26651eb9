"""What a block is as a part of a chat message: a text, an image, a file."""

from typing import Any

from translation import plain
from translation.providers.profile import Profile
from translation.values import Block, Document, Image

Json = dict[str, Any]  # chat JSON, built here and encoded in openai_chat


def text_part(text: str) -> Json:
    return {"type": "text", "text": text}


def file_part(block: Block, profile: Profile) -> Json | None:
    """An image or a PDF as a part of its own, where the model takes it."""
    match block:
        case Image(kind="base64") if profile.images:
            return _image(f"data:{block.media_type};base64,{block.data}", block.detail)
        case Image(kind="url") if profile.images and profile.image_urls:
            return _image(block.data, block.detail)
        case Document(kind="base64") if profile.documents != "text":
            data = f"data:{block.media_type or 'application/pdf'};base64,{block.data}"
            return {"type": "file", "file": {"filename": plain.filename(block), "file_data": data}}
        case Document(kind="url") if profile.documents == "fetched":
            return {"type": "file", "file": {"filename": plain.filename(block), "file_data": block.data}}
        case _:
            return None


def kind(block: Image | Document) -> str:
    noun = "image" if isinstance(block, Image) else f"document of type {block.media_type or 'unknown'}"
    return noun if block.kind == "base64" else f"{noun} by {block.kind}"


def _image(url: str, detail: str) -> Json:
    return {"type": "image_url", "image_url": {"url": url, "detail": detail} if detail else {"url": url}}
