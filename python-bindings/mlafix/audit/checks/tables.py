"""A11: pages in another order, and pages that several requests share."""

from __future__ import annotations

from typing import Any

from ..cases import Adapter
from ..judge import check_call
from .check import Check, base, fitted


def orders(adapter: Adapter) -> list[Any]:
    size = adapter.page_size
    lengths = [(3 * size, size + 1, 5), (2 * size + 3, 2 * size + 3, 4 * size)]
    return fitted([base(adapter, q_lens=(1, 1, 1), kv_lens=kv_lens, pages=pages, beyond=beyond)
                   for kv_lens in lengths for pages in ("straight", "shuffled") for beyond in ("zero", "nan")], adapter)  # fmt: skip


def no_tables(adapter: Adapter) -> str:
    return "" if adapter.form == "paged" else "no block table in this form"


CHECKS = [Check("A11", "permuted block tables", orders, check_call, lacks=no_tables)]
