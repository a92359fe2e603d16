"""Draws the layout as SVG text: which lane of which warp holds which bytes of a row."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from .launches import WARP, pack_of

_WIDTH = 960
_LEFT = 86
_BAR = 26
_STEP = 34
_MOST_ROWS = 6
_MOST_PACKS = 512


def draw_row(layout: Mapping[str, int], size: int, width: int, on_gpu: bool) -> str:
    """Draws rows of `size` elements with `width` bytes each, as the first threads of a block hold them.

    Args:
        layout: a layout with "lanes", "pack" and "rows", which docs/Dialect.md describes under LayoutAttr.
        on_gpu: whether lanes are threads of warps; on a CPU, a single lane processes all packs.
    """
    pack = pack_of(layout, size)
    rows = max(1, min(_MOST_ROWS, layout["rows"], WARP // layout["lanes"] if layout["lanes"] < WARP else 1)) if on_gpu else 1
    height = rows * _STEP + 34
    parts = [f'<div class="wide"><svg class="layout" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="layout of a row of {size} elements">']
    scale = (_WIDTH - _LEFT - 16) / size
    for row in range(rows):
        top = row * _STEP + 4
        parts.append(f'<text x="0" y="{top + 17}" class="label">row {row}</text>')
        for number in range(min(-(-size // pack), _MOST_PACKS)):
            thread = row * layout["lanes"] + number % layout["lanes"]
            parts.append(_pack(number * pack, min(pack, size - number * pack), thread, scale, top, width, on_gpu, row))
    parts.append(_axis(size, width, scale, rows * _STEP + 8))
    return "".join(parts) + "</svg></div>"


def _pack(first: int, count: int, thread: int, scale: float, top: int, width: int, on_gpu: bool, row: int) -> str:
    lane, warp = thread % WARP, thread // WARP
    who = f"lane {lane} of warp {warp}" if on_gpu else "one access"
    title = f"{who}: elements {first} to {first + count - 1} of row {row}, bytes {first * width} to {(first + count) * width - 1}"
    hue = (lane * 11 + warp * 67) % 360 if on_gpu else (first // max(count, 1)) * 29 % 360
    x, wide = _LEFT + first * scale, count * scale
    text = str(lane) if on_gpu else ""
    if warp and wide > 30:
        text = f"{warp}:{lane}"
    label = f'<text x="{x + wide / 2:.1f}" y="{top + 17}" class="lane">{text}</text>' if wide > 13 and text else ""
    return (
        f'<g><title>{escape(title)}</title><rect x="{x:.2f}" y="{top}" width="{max(wide - 0.8, 0.4):.2f}" height="{_BAR}" '
        f'rx="2" fill="hsl({hue} 62% 78%)"/>{label}</g>'
    )


def _axis(size: int, width: int, scale: float, top: int) -> str:
    """Returns an axis of bytes with up to nine marks, as SVG."""
    step = max(width, -(-size * width // 8 // 16) * 16) if size * width >= 128 else max(width, size * width // 4 or width)
    marks = [*range(0, size * width, step), size * width]
    texts = "".join(
        f'<text x="{_LEFT + mark / width * scale:.1f}" y="{top + 16}" class="axis">{mark}</text>' for mark in marks
        if mark == size * width or size * width - mark >= step // 2
    )  # fmt: skip
    return f'<text x="0" y="{top + 16}" class="axis first">bytes</text>{texts}'
