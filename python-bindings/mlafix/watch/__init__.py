"""Watches a running engine: checks results at its seams, and names the row, layer and kernel of the first fault.

    MLAFIX_WATCH=1 vllm serve MODEL

A check is one launch. It reads rows once, and writes nothing if they are right (`mlafix.ops.checks`). The first fault is
reported in one line with its step, layer, seam, request, token and class, and the expected and actual values. docs/Watch.md
is for users. This package needs torch. In mlafix, only the command line imports this package.
"""

from .choice import Choice, choice_of
from .functions import register_transformers, watch, watching
from .report import Report
from .watcher import Watch, fill_nan, poison_cache

__all__ = ["Choice", "Report", "Watch", "choice_of", "fill_nan", "poison_cache", "register_transformers", "watch", "watching"]
