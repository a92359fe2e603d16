"""A pytest plugin: a test for each check of an audit.

    pytest_plugins = ["mlafix.audit.pytest_plugin"]      # in conftest.py

    @pytest.mark.mlafix_audit(backend=attention, dtype="bfloat16")
    def test_attention(mlafix_audit):
        '''One test for each check; the body runs once the check holds.'''

A check with an error fails its test. If a check is not applicable or not run, its test is skipped. A warning becomes a
pytest warning, but fails the test of the plain call A0. Waived findings and notes have no effect. The mark takes
`backend=` by keyword, because pytest treats a mark with a single function argument as a decorator of that function.
"""

from __future__ import annotations

import warnings

import pytest

from .checks import CHECKS
from .findings import DOES_NOT, HOLDS, Outcome
from .report import finding_lines
from .runner import audit

FIXTURE = "mlafix_audit"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "mlafix_audit(backend=…, checks=None, limits=None, claim=None, **fields): run the checks of mlafix.audit, a test each")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker(FIXTURE)
    if marker is None:
        return
    if FIXTURE not in metafunc.fixturenames:
        metafunc.fixturenames.append(FIXTURE)
    metafunc.parametrize(FIXTURE, list(marker.kwargs.get("checks") or CHECKS), indirect=True)


@pytest.fixture
def mlafix_audit(request: pytest.FixtureRequest) -> Outcome:
    """Runs the audit with the test's check alone and returns its outcome."""
    marker = request.node.get_closest_marker(FIXTURE)
    if marker is None or not hasattr(request, "param"):
        raise pytest.UsageError("mlafix_audit: expected a test with the mark mlafix_audit(backend), got one without")
    fields = {name: value for name, value in marker.kwargs.items() if name != "checks"}
    if len(marker.args) + ("backend" in fields) != 1:
        raise pytest.UsageError("mlafix_audit: expected the mark mlafix_audit(backend=…), got one without a backend")
    return audit(*marker.args, checks=[request.param], progress=False, **fields).outcomes[0]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Skips or fails a marked test according to the outcome of its check, before the test's body runs. A finding of
    severity "warning" does not fail the test, except that of the plain call A0."""
    outcome = pyfuncitem.funcargs.get(FIXTURE)
    if not isinstance(outcome, Outcome) or outcome.status == HOLDS:
        return
    if outcome.status != DOES_NOT:
        pytest.skip(f"{outcome.check}: {outcome.status}: {outcome.why}")
    counted = [finding for finding in outcome.findings if not finding.waived]
    lines = [line for finding in counted for line in finding_lines(finding)]
    if any(finding.severity == "error" for finding in counted) or counted and outcome.check == "A0":
        pytest.fail("\n".join([f"{outcome.check}, {outcome.title}: {outcome.status}", *lines, *outcome.remarks]), pytrace=False)
    for finding in counted:
        warnings.warn(pytest.PytestWarning("\n".join(finding_lines(finding))), stacklevel=1)
