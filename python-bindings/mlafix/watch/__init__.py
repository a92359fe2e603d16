"""Which row, which layer, which kernel: checks behind the seams of a running engine.

    MLAFIX_WATCH=1 vllm serve MODEL

A check is one launch that reads rows once and writes nothing where they are right (`mlafix.ops.check_states` and its neighbours). The
first offence is one line: step, layer, seam, request and token, class, what was expected and what was found. docs/Watch.md is for
users. Needs torch; nothing else in mlafix imports this package but the command line.
"""

from .choice import Choice, choice_of
from .functions import register_transformers, watch, watching
from .report import Report
from .watcher import Watch, fill_nan, poison_cache

__all__ = ["Choice", "Report", "Watch", "choice_of", "fill_nan", "poison_cache", "register_transformers", "watch", "watching"]
