"""Draws pictures as SVG text: the percentage of the roof over the bytes of a case, with a line for each implementation
and each roof."""

from __future__ import annotations

import math
from html import escape

from results import NOT_MEASURED, ROOFS, Run, best_roof, percent_of_roof, roof_time, timed, total_bytes

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 190, 48, 52
GRID, TEXT, FAINT = "#d0d7de", "#24292f", "#57606a"
COLORS = {"mlafix, dependent": "#0969da", "mlafix": "#54aeff"}
ROOF_COLOR = "#24292f"
BASELINE_COLORS = ("#bc4c00", "#1a7f37", "#8250df", "#6e7781", "#bf3989", "#9a6700")

Line = tuple[str, list[tuple[float, float]]]


def bytes_text(count: float) -> str:
    """Formats 1600000 as "1.6 MB"."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def title_of(run: Run, prefix: str) -> str:
    """Returns the caption of a picture of the cases with this prefix. The caption says what 100 % is, and which values
    are missing."""
    cases = [case for case in run.cases(prefix) if "roof" in case]
    if all("roof_dependent" in case for case in cases):
        return f"{prefix.rstrip('/')}: percent of the faster stream roof"
    return f"{prefix.rstrip('/')}: percent of the stream roof (roof, dependent: {NOT_MEASURED})"


def lines_of(run: Run, prefix: str) -> list[Line]:
    """Returns the points (bytes, percentage of the faster roof) of every implementation and every roof, over the cases
    with this prefix."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for case in run.cases(prefix):
        best = best_roof(case)
        for name, field in ROOFS.items():
            if best and (time := roof_time(case, field)):
                lines.setdefault(name, []).append((float(total_bytes(case)), 100 * best / time))
        for name in timed(case):
            if (percent := percent_of_roof(case, name)) is not None:
                lines.setdefault(name, []).append((float(total_bytes(case)), percent))
    return [(name, sorted(points)) for name, points in lines.items()]


def spread_labels(heights: list[float], gap: float) -> list[float]:
    """Moves heights apart, downwards, so that labels at these heights do not overlap."""
    placed = dict[int, float]()
    last = -math.inf
    for index in sorted(range(len(heights)), key=lambda i: heights[i]):
        last = max(heights[index], last + gap)
        placed[index] = last
    return [placed[index] for index in range(len(heights))]


def draw(title: str, lines: list[Line]) -> str:
    """Returns the SVG text. Each line must have at least one point."""
    xs = sorted({x for _, points in lines for x, _ in points})
    ys = [y for _, points in lines for _, y in points]
    low, high = 10 * math.floor(min(min(ys), 90) / 10), 10 * math.ceil(max(max(ys), 100) / 10)
    step = 10 if high - low <= 120 else 20 * math.ceil((high - low) / 200)
    span = math.log(xs[-1] / xs[0]) or 1.0

    def across(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(x / xs[0]) / span if len(xs) > 1 else 0.5)

    def down(y: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - y) / (high - low)

    end = WIDTH - RIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="Helvetica, Arial, sans-serif" '
           f'font-size="13" role="img" aria-label="{escape(title)}">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="26" font-size="15" font-weight="bold" fill="{TEXT}">{escape(title)}</text>']
    for y in range(low, high + 1, step):
        color, width = (FAINT, 1.5) if y == 100 else (GRID, 1)
        out.append(f'<path d="M{LEFT} {down(y):.1f}H{end}" stroke="{color}" stroke-width="{width}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{down(y) + 4:.1f}" text-anchor="end" fill="{FAINT}">{y} %</text>')
    for x in xs:
        out.append(f'<path d="M{across(x):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{GRID}" stroke-dasharray="2 4"/>')
        out.append(f'<text x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle" fill="{FAINT}">{bytes_text(x)}</text>')
    out.append(f'<text x="{(LEFT + end) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle" fill="{FAINT}">bytes moved</text>')
    baselines = [name for name, _ in lines if name not in COLORS and name not in ROOFS]
    labels = spread_labels([down(points[-1][1]) for _, points in lines], 17)
    # Draws mlafix's line last, so that it is on top.
    for label, (name, points) in sorted(zip(labels, lines), key=lambda item: item[1][0] in COLORS):
        is_ours, is_roof = name in COLORS, name in ROOFS
        color = COLORS[name] if is_ours else ROOF_COLOR if is_roof else BASELINE_COLORS[baselines.index(name) % len(BASELINE_COLORS)]
        path = "L".join(f"{across(x):.1f} {down(y):.1f}" for x, y in points)
        dashes = ' stroke-dasharray="6 4"' if is_roof else ""
        out.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="{3 if is_ours else 2}"{dashes}/>')
        out += [f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="{4 if is_ours else 3}" fill="{color}"/>' for x, y in points]
        out.append(f'<text x="{end + 12}" y="{label + 4:.1f}" fill="{color}"{" font-weight=%sbold%s" % (chr(34), chr(34)) if is_ours else ""}>'
                   f'{escape(name)}</text>')
    return "\n".join(out) + "\n</svg>\n"
