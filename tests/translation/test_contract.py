"""Every adapter that keeps opaque state joins here."""

import pytest

from tests.translation.adapters import trials
from tests.translation.contract import Secret, check_hidden_from_others, check_known_with_the_calls, check_sent_back
from translation.adapter import Target
from translation.adapters import adapter
from translation.providers.profiles import PROFILES


def target(provider: str, model: str) -> Target:
    return Target(provider, model, PROFILES[provider])


SECRETS = [
    Secret(
        adapter(PROFILES["deepseek"]),
        target("deepseek", "deepseek-v4-flash"),
        "deepseek/reasoning_then_parallel_calls",
        (
            (
                b'{"role":"assistant","content":"Right.","reasoning_content":"The user wants two things.",'
                b'"tool_calls":[{"id":"call_00_Wk5"'
            ),
        ),
        (b"The user wants two things.", b"call_00_Wk5"),
    ),
    Secret(
        adapter(PROFILES["gemini"]),
        target("gemini", "gemini-3-pro-preview"),
        "gemini/parallel_calls",
        (
            b'{"role":"model","parts":[{"functionCall":{"name":"read_file","args":',
            b'},"thoughtSignature":"EuIBCt8BAXLI2nwQp3+/abcd"},{"functionCall":{"name":"read_file","args":',
            b'{"text":"","thoughtSignature":"CiQBcsjafB/late+sig="}]}',
        ),
        (b"EuIBCt8BAXLI2nwQp3+/abcd", b"CiQBcsjafB/late+sig="),
    ),
    Secret(
        adapter(PROFILES["vllm"]),
        target("vllm", "gemini-3-pro-preview"),
        "vllm/signed_parallel_calls",
        (
            b'"extra_content":{"google":{"thought_signature":"EjQKMgEMOdbHJChLX75Q+/UCJjyYlm=="}}},{"id":"x9s1kq02",',
            b'"id":"jm4owj31","type":"function","function":',
        ),
        (b"EjQKMgEMOdbHJChLX75Q+/UCJjyYlm==",),
    ),
    Secret(
        adapter(PROFILES["vllm"]),
        target("vllm", "gemini-3-pro"),
        "vllm/signed_in_litellms_fields",
        (
            b'"provider_specific_fields":{"thought_signature":"EpgBCpUBAWkU"}}]},{"role":"tool","tool_call_id":"call_524',
        ),
        (b"EpgBCpUBAWkU",),
    ),
    Secret(
        adapter(PROFILES["openai"]),
        target("openai", "gemini-3-pro-preview"),
        "openai/whole_signed_calls",
        (b'"extra_content":{"google":{"thought_signature":"CvcQAdHN2OekY10ClPFkYA=="}}},{"id":"function-call-2",',),
        (b"CvcQAdHN2OekY10ClPFkYA==",),
    ),
    Secret(
        adapter(PROFILES["vllm"]),
        target("vllm", "claude-sonnet-4-5"),
        "vllm/thinking_blocks_of_litellm",
        (
            (
                b'"content":"I read.","thinking_blocks":[{"type":"thinking","thinking":"I should read.",'
                b'"signature":"EqQBCg+/=="},{"type":"redacted_thinking","data":"EmwKAhgB"},'
                b'{"type":"thinking","thinking":"Then tell.","signature":"ErUBCk=="}],"tool_calls":[{"id":"toolu_01X"'
            ),
        ),
        (b"EqQBCg+/==", b"EmwKAhgB", b"ErUBCk=="),
    ),
    Secret(
        adapter(PROFILES["openai"]),
        target("openai", "claude-sonnet-4-5"),
        "openai/whole_thinking_blocks",
        (
            (
                b'"content":"I read.","thinking_blocks":[{"type":"thinking","thinking":"I should read.",'
                b'"signature":"EqQBCg+/=="},{"type":"redacted_thinking","data":"EmwKAhgB"}],"tool_calls":['
            ),
        ),
        (b"EqQBCg+/==", b"EmwKAhgB"),
    ),
    Secret(
        adapter(PROFILES["vllm"]),
        target("vllm", "gemini-3-pro-preview"),
        "vllm/signed_text",
        (b'"content":"I can call it.","extra_content":{"google":{"thought_signature":"CrICAdHtim827fQ=="}}}',),
        (b"CrICAdHtim827fQ==",),
    ),
    Secret(
        adapter(PROFILES["vllm"]),
        target("vllm", "gemini-2.5-pro"),
        "vllm/signed_text_of_litellm",
        (b'"content":"Let me read. ","provider_specific_fields":{"thought_signatures":["CoYBAXLI2n==","TGF0ZQ=="]},',),
        (b"CoYBAXLI2n==", b"TGF0ZQ=="),
    ),
    Secret(
        adapter(PROFILES["vllm"]),
        target("vllm", "gemini-3-pro-preview"),
        "vllm/opaque_reasoning_of_copilot",
        (
            (
                b'"content":null,"reasoning_text":"**Assessing**\\n\\nI look at the file.",'
                b'"reasoning_opaque":"4CUQ6696CwSXOdQ5rtvDimqA91tBzfmga4ieRbmZ5P67T2NLW3","tool_calls":['
            ),
        ),
        (b"4CUQ6696CwSXOdQ5rtvDimqA91tBzfmga4ieRbmZ5P67T2NLW3", b"I look at the file."),
    ),
    Secret(
        adapter(PROFILES["openai-responses"]),
        target("openai-responses", "gpt-5.5"),
        "openai-responses/reasoning_then_call",
        (
            (
                rb'{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAAABo-\\/+first==","summary":[{"type":'
                rb'"summary_text","text":"**Plan**\n\nLook it up."},{"type":"summary_text","text":"Then answer."}]},'
                rb'{"type":"function_call"'
            ),
        ),
        (rb"gAAAAABo-\\/+first==", b"rs_1", b"call_Ab1"),
    ),
    Secret(
        adapter(PROFILES["minimax"]),
        target("minimax", "MiniMax-M2"),
        "minimax/call_inside_thinking",
        (rb'{"role":"assistant","content":"<think>\nI search.\n</think>","tool_calls":[{"id":"toolu_',),
        (b"I search.",),
    ),
]
OTHERS = [(trial.adapter, trial.target) for trial in trials()]


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret.id)
def test_state_that_the_client_lost_is_back_byte_for_byte_at_its_place(secret: Secret) -> None:
    check_sent_back(secret)


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret.id)
def test_state_known_with_a_call_survives_a_turn_that_died_after_it(secret: Secret) -> None:
    check_known_with_the_calls(secret)


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret.id)
def test_state_never_reaches_another_upstream(secret: Secret) -> None:
    check_hidden_from_others(secret, OTHERS)
