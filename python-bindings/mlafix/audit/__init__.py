"""Audits a backend of attention: finds wrong rows, the calls that give them, and the mlafix call that repairs them.

    from mlafix.audit import audit
    report = audit(attention)
    print(report)

docs/Audit.md describes the forms of a backend, the checks and their reports. docs/Contract.md has the contract itself.
This package needs torch, but no compiler and no GPU. `import mlafix` does not import this package.
"""

from .cases import Adapter, Case, Fault, StateCase
from .checks import CHECKS
from .clauses import CLAUSES, CONTRACT, Claim, Waiver
from .findings import Finding, Outcome
from .page import write_page
from .report import SCHEMA, Report, compare
from .runner import audit, audit_matrix
from .worker import Limits

__all__ = [
    "CHECKS", "CLAUSES", "CONTRACT", "SCHEMA", "Adapter", "Case", "Claim", "Fault", "Finding", "Limits", "Outcome", "Report", "StateCase", "Waiver", "audit",
    "audit_matrix", "compare", "write_page",
]  # fmt: skip
