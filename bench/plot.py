"""The cost of a turn against the age of its conversation, as an SVG that needs nothing but a browser."""

from collections.abc import Sequence

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 380, 70, 48, 150, 46
FONT = 'font-family="sans-serif" font-size="12"'
LEGEND = "solid: the old conversation; dashed: turn 5 of a young one, same history"
COLOURS = ("#1f6feb", "#8250df", "#1a7f37", "#bc4c00")
Line = tuple[str, Sequence[tuple[float, float]], Sequence[tuple[float, float]]]  # name, old, young


def svg(title: str, lines: Sequence[Line]) -> str:
    points = [point for _, old, young in lines for point in (*old, *young)]
    most_x, most_y = max(x for x, _ in points), _round(max(y for _, y in points))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{title}</text>',
        f'<text x="{LEFT}" y="37" fill="#57606a">{LEGEND}</text>',
        *_axes(most_x, most_y),
    ]
    for number, (name, old, young) in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        for values, dash in ((old, ""), (young, ' stroke-dasharray="5 4"')):
            drawn = " ".join(f"{_x(x, most_x):.1f},{_y(y, most_y):.1f}" for x, y in values)
            parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        place = TOP + 16 + 18 * number
        parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{place}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _axes(most_x: float, most_y: float) -> list[str]:
    parts = []
    for step in range(6):
        value, across = most_y * step / 5, most_x * step / 5
        y, x = _y(value, most_y), _x(across, most_x)
        parts += [
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#d0d7de"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#57606a">{value:g}</text>',
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#57606a">{across:g}</text>',
        ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*parts, f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle" fill="#57606a">turn</text>']


def _x(value: float, most: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value / most


def _y(value: float, most: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / most


def _round(value: float) -> float:
    """Up to the next 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** (len(str(int(value))) - 1)
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value)
