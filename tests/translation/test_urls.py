"""Addresses of upstreams."""

from translation.urls import join


def test_the_path_goes_below_the_base_url_and_the_query_stays_last() -> None:
    assert join("https://api.openai.com/v1/", "/chat/completions") == "https://api.openai.com/v1/chat/completions"
    azure = "https://x.openai.azure.com/openai/deployments/gpt-4o?api-version=2026-01-01"
    expected = "https://x.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2026-01-01"
    assert join(azure, "/chat/completions") == expected
