#!/usr/bin/env python3
"""Writes the generated parts of docs/performance.md and README.md, and the page's pictures, from the JSON in benchmarks/results.

    python3 benchmarks/report                write them
    python3 benchmarks/report --check        exit with status 1 if they differ from the JSON

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`; the rest of a page is written by hand. NAME
is one of these:

- goals, gains, chains or host;
- engines, engine-ranges or behind, for kernels of engines;
- picture:PREFIX, where PREFIX is a prefix of the names of cases;
- PREFIX (on a GPU), cpu:PREFIX or python:PREFIX for a table, or several of these joined by +.

If there are results of several cards, a name ends in @CARD, such as @h100, except for the CPU.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from picture import draw, lines_of, title_of  # noqa: E402
from results import Results, load  # noqa: E402
from tables import (NOTHING, behind_table, chains_table, engine_ranges, engines_table, gains_table, goals_table, group_table,  # noqa: E402
                    host_table)

ROOT = Path(__file__).resolve().parents[2]
PART = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Writer:
    """Writes the generated parts of pages, and collects the pictures that they show."""

    def __init__(self, cards: dict[str, Results], images: str) -> None:
        self.cards = cards
        self.images = images
        self.pictures: dict[str, str] = {}

    def picture(self, results: Results, prefix: str, card: str) -> str:
        """Returns the Markdown for a picture."""
        lines = lines_of(results.gpu, prefix) if results.gpu else []
        if not results.gpu or not lines:
            return NOTHING
        name = "-".join(filter(None, ["performance", card, re.sub(r"\W+", "-", prefix).strip("-")])) + ".svg"
        title = title_of(results.gpu, prefix)
        self.pictures[name] = draw(title, lines)
        return f"![{title}]({self.images}/{name})"

    def part(self, name: str) -> str:
        """Returns the text of the generated part with this name. Raises ValueError if there are no results of the card."""
        name, _, card = name.partition("@")
        is_cpu = name.startswith("cpu:")
        if not is_cpu and (card or len(self.cards) > 1) and card not in self.cards:
            raise ValueError(f"expected one of the cards {', '.join(self.cards)}, got '{card}' in '{name}'")
        results = self.cards[card] if card else next(iter(self.cards.values()))
        kind, _, prefix = name.rpartition(":")
        if kind == "picture":
            return self.picture(results, prefix, card)
        if kind in ("cpu", "python"):
            run = getattr(results, kind)
            return f"{run.title}.\n\n{group_table(run, prefix)}" if run else NOTHING
        whole = {"goals": goals_table, "gains": gains_table, "chains": chains_table, "host": host_table, "engines": engines_table,
                 "engine-ranges": engine_ranges, "behind": behind_table}.get(name)
        return whole(results) if whole else group_table(results.gpu, name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks/results")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/performance.md")
    parser.add_argument("--readme", type=Path, help="default: README.md of the project, with its page")
    options = parser.parse_args()
    pages = [options.page, *filter(None, [options.readme or (ROOT / "README.md" if options.page == parser.get_default("page") else None)])]
    try:
        writer = Writer(load(options.results), "images")
        new = {page: PART.sub(lambda match: f"{match[1]}\n{writer.part(match[2])}\n\n{match[3]}", page.read_text()) for page in pages}
    except (ValueError, KeyError) as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    images = options.page.parent / "images"
    wanted = {images / name: text for name, text in writer.pictures.items()}
    stale = [path for path in sorted(images.glob("performance-*.svg")) if path not in wanted]
    changed = [path for path, text in {**new, **wanted}.items() if not path.exists() or path.read_text() != text]
    if options.check:
        for path in changed + stale:
            print(f"report: {path.name} is not what {options.results.name}/*.json says: run python3 benchmarks/report", file=sys.stderr)
        return int(bool(changed or stale))
    images.mkdir(exist_ok=True)
    for path in stale:
        path.unlink()
    for path, text in {**new, **wanted}.items():
        path.write_text(text)
    print(f"report: wrote {options.page.name} and {len(wanted)} pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
