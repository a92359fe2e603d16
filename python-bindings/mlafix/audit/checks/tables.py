"""A11 checks pages in another order, pages that several requests share, and unused entries of block tables."""

from __future__ import annotations

from ..cases import Adapter
from ..judge import check_call
from .check import PAGED, Check, Groups, base, only_in


def orders(adapter: Adapter) -> Groups:
    size = adapter.page_size
    lengths = [(3 * size, size + 1, 5), (2 * size + 3, 2 * size + 3, 4 * size)]
    words = {"straight": "pages in order", "shuffled": "shuffled pages", "shared": "a prefix that all share", "equal": "one sequence and its beginnings",
             "dead": "entries of -1 and 2^31 - 1 behind the length"}  # fmt: skip
    return {what: [base(adapter, q_lens=(1, 1, 1), kv_lens=kv_lens, pages=pages, beyond=beyond) for kv_lens in lengths for beyond in ("zero", "nan")]
            + [base(adapter, q_lens=(1, 2, 1), kv_lens=lengths[0], pages=pages, causal=True, pad_requests=int(pages == "dead"))]
            for pages, what in words.items()}  # fmt: skip


CHECKS = [Check("A11", "permuted, shared and dead entries of block tables", ("C4", "C11"), orders, check_call,
                lacks=only_in(PAGED, "no block table in this form"), must_return=True)]  # fmt: skip
