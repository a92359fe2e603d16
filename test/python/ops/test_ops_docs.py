"""Tests the pages of the operations, which scripts/gen-op-docs writes: their examples run, and every function is on a
page."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from mlafix import compat, ops

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = [*sorted((DOCS / "ops").glob("*.md")), DOCS / "Migration.md", DOCS / "Recipes.md"]
BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_print_what_the_page_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.stem == "Migration":
        pytest.importorskip("torch")
    examples = [e for block in BLOCK.findall(text) for e in doctest.DocTestParser().get_examples(block)]
    assert examples, f"{page.name}: expected an example, found none"
    test = doctest.DocTest(examples, {}, page.name, str(page), 0, text)
    failed: list[str] = []
    doctest.DocTestRunner().run(test, out=failed.append)
    assert not failed, "".join(failed)


def test_every_function_and_format_is_in_the_index_and_has_an_example() -> None:
    linked = re.findall(r"\[(\w+)\]\((\w+\.md)", (DOCS / "ops" / "README.md").read_text(encoding="utf-8"))
    types = {"Array", "Base", "Bases", "Bound", "LseLayout", "OutFormat", "Stream"}
    assert sorted(name for name, _ in linked if name in ops.__all__) == sorted(set(ops.__all__) - types), "run scripts/gen-docs"
    for name, page in [link for link in linked if link[0] in ops.__all__]:
        text = (DOCS / "ops" / page).read_text(encoding="utf-8")
        if page == "formats.md":
            text = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert f"ops.{name}(" in text, f"{page}: expected an example of {name}, found none"
    modules = re.findall(r"^\| \[.*?\]\((\w+\.md)\)", (DOCS / "ops" / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {*modules, *(page for _, page in linked)} == {path.name for path in (DOCS / "ops").glob("[a-z]*.md")}


def test_every_page_of_a_function_says_what_it_takes_costs_and_replaces() -> None:
    from_migration = re.findall(r"\]\(ops/(\w+)\.md\)", (DOCS / "Migration.md").read_text(encoding="utf-8").partition("\n## Conventions")[0])
    for name in set(ops.__all__) - set(ops.formats.__all__):
        path = DOCS / "ops" / f"{name}.md"
        if path.exists():
            heads = re.findall(r"^## (\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert {"Arguments", "Errors", "Example"} <= set(heads), name
            assert ("Cost" in heads) != (name in ("chunks_with_zero_kv", "offences")), name
            assert name not in from_migration or "Replaces" in heads, name


def test_migration_names_every_drop_in() -> None:
    text = (DOCS / "Migration.md").read_text(encoding="utf-8")
    folder = Path(compat.__path__[0])
    for module in sorted(folder.glob("[a-z]*.py")):
        for name in re.findall(r"^def ([a-z]\w*)", module.read_text(encoding="utf-8"), re.MULTILINE):
            assert f"`{name}`" in text, f"Migration.md: expected {module.stem}.{name}, found it nowhere"
