"""All providers in one server: each refuses what it would refuse, demands its state back, and follows the script."""

import re
from collections import defaultdict
from typing import Any

from tests.e2e.dialects.dialect import Turn
from tests.e2e.dialects.providers import BY_MODEL, Provider
from tests.e2e.dialects.script import STEPS, Chain, Json, Speech, chain_of, results_of
from tests.servers.script import Answer, Raw, Recorded, json_answer
from tests.servers.upstream import ScriptedUpstream

IN_PATH = re.compile(r"/models/(?P<model>[^:]+):(?P<stream>stream)?")  # Gemini names the model there
OURS = "toolbridge_"  # how the bridge signs thinking: nobody but its client gets to see it


class Models(ScriptedUpstream):
    """What a test queued for a path comes first; without it the script's model answers."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[str] = []
        self.lenient = False  # answers without looking at what was said: for tests that look themselves
        self._said: defaultdict[tuple[str, Chain], dict[int, Speech]] = defaultdict(dict)
        self._secrets: defaultdict[str, set[str]] = defaultdict(set)

    def reset(self) -> None:
        super().reset()
        self.refusals.clear()
        self.lenient = False
        self._said.clear()
        self._secrets.clear()

    def _answer_for(self, request: Recorded) -> Answer | Raw:
        scripted = super()._answer_for(request)
        if not isinstance(scripted, Answer) or scripted.status != 599:
            return scripted
        try:
            return self._played(request)
        except Exception as error:  # noqa: BLE001 - whatever a model does not understand is a refusal that shows
            self.refusals.append(f"{type(error).__name__}: {error} at {request.path}")
            return json_answer({"error": {"message": self.refusals[-1]}}, 418)

    def _played(self, request: Recorded) -> Answer:
        body: Json = request.json()
        in_path = IN_PATH.search(request.path)
        provider = BY_MODEL[in_path["model"] if in_path else body["model"]]
        stream = bool(in_path["stream"]) if in_path else body.get("stream", False)
        chain = chain_of(provider.dialect.opening(body))
        assert chain is not None, "the conversation has no mark"
        if self.lenient:
            return provider.dialect.answer(Speech(provider.name, chain, 2, stream))
        turns = provider.dialect.turns(body)
        found = [*self._illegal(provider, chain, request.body), *self._wrong(provider, chain, turns)]
        if found:
            self.refusals.append(f"{provider.name}: {found[0]}")
            return provider.dialect.error(found[0])
        speech = Speech(provider.name, chain, len(turns), stream)
        self._said[provider.name, chain][speech.number] = speech
        self._secrets[provider.name].update(speech.secrets)
        return provider.dialect.answer(speech)

    def _illegal(self, provider: Provider, chain: Chain, body: bytes) -> list[str]:
        text = body.decode()
        foreign = [
            f"{secret} was told to {provider.name}"
            for owner, secrets in self._secrets.items()
            if owner != provider.name
            for secret in secrets
            if secret in text
        ]
        leaked = ["the bridge's own signature was sent"] if OURS in text else []
        return [*provider.dialect.refused(body, long_ids=chain.ids == "long"), *foreign, *leaked]

    def _wrong(self, provider: Provider, chain: Chain, turns: list[Turn]) -> list[str]:
        said = self._said[provider.name, chain]
        found: list[str] = []
        for number, turn in enumerate(turns):
            step = STEPS[number]
            gist = (step.text, [(call.name, call.arguments) for call in step.calls])
            if tuple(turn.gist) != gist:
                found.append(f"turn {number} reads {tuple(turn.gist)}, was {gist}")
            # Anthropic takes them in any order, and gets them as the client wrote them.
            heard = sorted(turn.results) if provider.name == "anthropic" else turn.results
            if heard != results_of(number):
                found.append(f"turn {number} has the results {turn.results}")
            if number in said:
                found += _unlike(provider, said[number], turn)
        return found


def _unlike(provider: Provider, speech: Speech, turn: Turn) -> list[str]:
    """How an answer of this provider differs from what it had said."""
    found = []
    wanted: Any = provider.dialect.state(speech)
    # Anthropic's clients may leave thinking out; the validator knows when that is refused.
    if turn.state != wanted and not (provider.name == "anthropic" and not turn.state):
        found.append(f"the state of turn {speech.number} came back as {turn.state!r}, was {wanted!r}")
    if speech.chain.ids == "own" and provider.name not in ("anthropic", "minimax", "minimax-m3"):
        ids = [speech.id(index) for index in range(len(speech.step.calls))]
        if turn.ids != ids and provider.name != "mistral":
            found.append(f"the calls of turn {speech.number} came back as {turn.ids}, were {ids}")
    return found
