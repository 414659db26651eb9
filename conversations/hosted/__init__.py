"""Tools that the bridge runs itself: which are offered, where they may reach, and how each is run.

Every failure of a tool is a result that the model is told; nothing here raises into a turn.
"""
