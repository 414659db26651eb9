"""The tools that a model was offered, by the names that it knows: what it reads may say the client's."""

from translation.adapter import UpstreamRequest
from translation.coercion import ArgumentSchema
from translation.typed_tools import definition, kind
from translation.values import Request


class OfferedTools:
    def __init__(self, request: Request, sent: UpstreamRequest) -> None:
        own = {tool.name: tool for tool in request.tools if kind(tool) != "server"}
        self._offered = own | {alias: own[name] for alias, name in sent.names if name in own}
        self._schemas: dict[str, ArgumentSchema] = {}
        self.names = frozenset(self._offered)

    def client(self, name: str) -> str:
        return self._offered[name].name

    def parameters(self, name: str) -> frozenset[str]:
        return self.schema(name).names

    def schema(self, name: str) -> ArgumentSchema:
        """A tool that was not offered takes anything."""
        if name not in self._schemas:
            tool = self._offered.get(name)
            self._schemas[name] = ArgumentSchema(definition(tool).schema if tool else b"")
        return self._schemas[name]
