"""Audits a backend of attention: which rows are wrong, on which calls, and the call that repairs them.

    from mlafix.audit import audit
    report = audit(attention)
    print(report)

docs/Audit.md has the forms of a backend, the checks and their reports; docs/Contract.md the contract itself. Needs torch, no
compiler and no GPU; `import mlafix` does not import it.
"""

from .cases import Adapter, Case, Fault, StateCase
from .checks import CHECKS
from .findings import Finding, Outcome
from .page import write_page
from .report import SCHEMA, Report, compare
from .runner import audit
from .worker import Limits

__all__ = ["CHECKS", "SCHEMA", "Adapter", "Case", "Fault", "Finding", "Limits", "Outcome", "Report", "StateCase", "audit", "compare", "write_page"]
