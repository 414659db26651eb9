"""What the import contracts cannot say: a dialect's files know their own dialect and the shared profiles only."""

import grimp

DIALECTS = ("anthropic", "gemini", "minimax", "openai_chat", "openai_responses")
# MiniMax speaks Chat Completions with its own habits.
BUILT_ON = {"minimax": "openai_chat"}


def dialect(module: str) -> str | None:
    name = module.removeprefix("translation.providers.")
    return next((known for known in DIALECTS if name == known or name.startswith(f"{known}_")), None)


def test_dialects_do_not_know_each_other() -> None:
    graph = grimp.build_graph("translation", cache_dir=None)
    crossings = [
        (module, imported)
        for module in graph.modules
        if (own := dialect(module))
        for imported in graph.find_modules_directly_imported_by(module)
        if (other := dialect(imported)) and other not in {own, BUILT_ON.get(own)}
    ]
    assert crossings == []
