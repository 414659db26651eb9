"""Strict validators of upstream requests, one per provider family, written from published rules and error texts.

Each has `validate(body) -> list[str]`: what that provider would refuse, each with a path; [] when it takes the request.
"""
