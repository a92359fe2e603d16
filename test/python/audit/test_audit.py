"""Tests that `mlafix.audit` finds a planted fault of each class, writes a script that fails with it, and proposes a
repair. Correct backends must have no findings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import audit_backends  # noqa: E402
import audit_faults  # noqa: E402

from mlafix.audit import Adapter, Limits, audit, runner  # noqa: E402
from mlafix.audit.adapter import as_adapter  # noqa: E402


# These limits are so long that no result depends on the speed of a busy machine.
PATIENT = Limits(check=600.0, total=6000.0, case=120.0, first=600.0, shrink=0.2, repair=0.2)
IMPATIENT = Limits(check=600.0, total=6000.0, case=2.0, first=600.0, shrink=0.0)  # for backends that hang


@dataclass(frozen=True)
class Planted:
    """A fault of audit_faults, the check that must find it, a part of the finding's kind, and the expected repair."""

    name: str
    check: str
    kind: str
    repair: str = ""  # the expected repair, or "" if none is expected
    severity: str = "error"
    like: str = "ragged"  # the correct backend for which the adapter is made


PLANTED = [
    Planted("stale_rows", "A1", "rows without keys", "ops.fixup_zero_kv_rows"),
    Planted("lse_of_a_neighbour", "A1", "lse of live rows"),
    Planted("masked_rows_are_nan", "A2", "all masked", "ops.fixup_zero_kv_rows"),
    Planted("zero_init_removed", "A3", "padded rows are uninitialised", "ops.fill_pad_rows", "warning", "ragged without outputs"),
    Planted("stale_is_prefilling", "A3", "padded rows are", "ops.fill_pad_rows"),
    Planted("reads_behind_seq_len", "A4", "live rows", "ops.fixup_zero_kv_rows", like="dense"),
    Planted("reads_pages_of_nobody", "A4", "live rows", "ops.zero_blocks", like="paged"),
    Planted("lse_in_padded_memory", "A1", "lse of rows without keys", "ops.fixup_zero_kv_rows", like="dense without outputs"),
    Planted("base_2", "A5", "base of the lse", 'base="2"'),
    Planted("heads_first", "A5", "layout of the lse", 'lse_layout="hn"', like="ragged without outputs"),
    Planted("stats_of_empty_rows", "A5", "lse of rows without keys", "ops.fixup_zero_kv_rows"),
    Planted("ignores_sinks", "A5", "sinks are ignored", "ops.apply_sink"),
    Planted("sentinel", "A6", "the merge of"),
    Planted("strides_of_lengths", "A8", "", "ops.expand_context_lens", like="paged"),
    Planted("strides_of_heads", "A8", "live rows", "q.contiguous()"),
    Planted("merge_in_place_race", "A8", "live rows", "ops.merge_attn_states", like="merge"),
    Planted("bits_of_the_batch", "A9", "bits of a row"),
    Planted("length_of_minus_one_hangs", "A10", "hang", "ops.expand_context_lens", like="paged"),
    Planted("many_heads_crash", "A10", "crash"),
    Planted("ignores_the_table", "A11", "live rows", like="paged"),
    Planted("writes_behind_out", "A0", "memory behind out was written"),
    Planted("merge_of_two_empty_sides", "A1", "rows empty on all sides", "ops.merge_attn_states", like="merge"),
    Planted("merge_multiplies_garbage", "A4", "rows with one live side", "ops.merge_attn_states", like="merge"),
    Planted("reduce_of_empty_ranks", "A4", "live rows", "Reducer", like="reduce"),
]


def adapter_of(planted: Planted) -> Adapter:
    like = planted.like.partition(" ")[0]
    adapter = as_adapter(getattr(audit_backends, like), device="cpu")
    takes = tuple(name for name in adapter.takes if name == "seq_lens_k" or not planted.like.endswith("without outputs"))
    fields: dict[str, Any] = {"takes": takes, "batch_invariant": planted.check == "A9"}
    if planted.name == "lse_in_padded_memory":
        fields["lse_layout"] = "hn"
    if like == "paged":
        fields["takes"] = tuple(name for name in takes if name != "num_splits")
    if planted.check == "A0":
        fields["takes"] = tuple(name for name in takes if name in ("out", "lse"))
    return as_adapter(adapter, call=getattr(audit_faults, planted.name), name=planted.name, **fields)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_planted_fault_is_found_shown_and_repaired(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "PATIENCE", 4.0)
    limits = IMPATIENT if planted.kind == "hang" else PATIENT
    report = audit(adapter_of(planted), checks=[planted.check], limits=limits, progress=False)
    (outcome,) = report.outcomes
    assert outcome.status == "does not hold", str(report)
    found = [finding for finding in outcome.findings if planted.kind in finding.kind]
    assert found, str(report)
    finding = found[0]
    assert (finding.severity, finding.script_status) == (planted.severity, "fails"), str(report)
    imported = re.findall(r"^\s*(?:import|from) (mlafix\S*)", finding.script, re.MULTILINE)
    assert set(imported) <= {"mlafix.audit"}, "expected a script of torch and the backend alone"
    if planted.repair:
        assert finding.repair, str(report)
        assert planted.repair in finding.repair["call"], str(report)
        assert finding.repair["status"] == "gone", str(report)


def test_right_backend_has_no_finding() -> None:
    """A correct backend has no finding with the default limits. test_audit_planted.py tests more correct backends, in
    one process."""
    report = audit(audit_backends.ragged, device="cpu", progress=False)
    assert not report.findings, str(report)
    assert report.status == 0
    bad = [outcome for outcome in report.outcomes if outcome.status == "does not hold" and outcome.check != "A9"]
    assert not bad, str(report)
    gpu = {outcome.check: outcome.why for outcome in report.outcomes if outcome.status == "not run"}
    assert gpu == {"A7": "no GPU", "A12": "no GPU"}


def test_closure_is_audited_in_a_fork(tmp_path: Path) -> None:
    """A backend that is a closure is audited in a fork, with one thread. With more threads, OpenMP would wait for
    threads of the parent process, which the fork lacks."""
    seen, before = tmp_path / "threads", torch.get_num_threads()

    def backend(q: Any, k: Any, v: Any, *, cu_seqlens_q: Any, cu_seqlens_k: Any, causal: bool, scale: float, out: Any = None, lse: Any = None) -> Any:
        with seen.open("a") as file:
            file.write(f"{torch.get_num_threads()}\n")
        return audit_faults.many_heads_crash(q, k, v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, causal=causal, scale=scale, out=out, lse=lse)

    torch.set_num_threads(2)
    try:
        report = audit(backend, device="cpu", checks=["A10"], limits=PATIENT, progress=False)
    finally:
        torch.set_num_threads(before)
    assert [finding.kind for finding in report.findings] == ["crash"], str(report)
    assert report.findings[0].script == ""
    assert set(seen.read_text().split()) == {"1"}
