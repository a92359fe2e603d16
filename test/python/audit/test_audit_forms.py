"""Correct backends of every form and with every option have no findings. For each form and option, a faulty backend has
a finding."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import audit_backends  # noqa: E402
import audit_planted  # noqa: E402

import mlafix  # noqa: E402
from mlafix.audit import CHECKS, CLAUSES, Adapter, audit  # noqa: E402
from mlafix.audit.adapter import as_adapter  # noqa: E402
from mlafix.audit.cases import Case  # noqa: E402
from mlafix.audit.checks.earlier import after_others  # noqa: E402
from mlafix.audit.checks.lse import check_lse  # noqa: E402
from mlafix.audit.checks.quantised import write  # noqa: E402
from mlafix.audit.judge import check_call  # noqa: E402
from mlafix.audit.table import CASES, write_cases  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]


def test_right_backend_has_no_finding() -> None:
    """A correct backend with the methods `plan`, `run` and `store`, which writes rows to its fp8 cache itself, has no
    finding."""
    report = audit(audit_backends.Planned, device="cpu", progress=False, kv_dtype="float8_e4m3fn")
    assert not report.findings, str(report)
    assert report.status == 0
    bad = [outcome for outcome in report.outcomes if outcome.status == "does not hold" and outcome.check != "A9"]
    assert not bad, str(report)
    held = {outcome.check: outcome.cases for outcome in report.outcomes if outcome.status == "holds"}
    assert {"A0", "A1", "A4", "A5", "A6", "A10", "A13", "A14", "A15", "A16", "A17"} <= set(held), str(report)


def test_forms_are_read_from_signatures() -> None:
    forms = {name: as_adapter(getattr(audit_backends, name), device="cpu") for name in ("ragged_paged", "latent", "Planned")}
    assert {name: adapter.form for name, adapter in forms.items()} == {"ragged_paged": "ragged_paged", "latent": "paged", "Planned": "ragged_paged"}
    latent = forms["latent"]
    assert (latent.latent, latent.kv_heads, latent.dim, latent.value_dim) == (True, 1, 576, 512)
    assert forms["Planned"].takes == ("out", "lse", "k_scale", "v_scale")
    assert as_adapter(audit_backends.ragged_with_options, device="cpu").takes[2] == "window_size"


def test_optional_keywords_need_not_stand_after_a_star() -> None:
    def merge(a: Any, a_lse: Any, b: Any, b_lse: Any, out: Any = None, lse: Any = None) -> None: ...

    def dense(q: Any, k: Any, v: Any, causal: bool = False, scale: float = 1.0, window_size: tuple[int, int] = (-1, -1), **given: Any) -> None: ...

    def reduce(out: Any, lse: Any, *, group: Any) -> None: ...

    assert [as_adapter(one, device="cpu").takes for one in (merge, dense, reduce)] == [("out", "lse"), ("window_size",), ()]


@pytest.mark.parametrize("changes, message", [
    ({"causal": "sometimes"}, "causal: expected one of True, False, always"),
    ({"kv_dtype": "int8"}, "kv_dtype: expected float8_e4m3fn or float8_e5m2"),
    ({"latent": True}, "latent: expected form 'paged' or 'ragged_paged', values_in_keys=True and kv_heads=1, got 'ragged_paged', values_in_keys=False, kv_heads=2$"),
])  # fmt: skip
def test_fields_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(mlafix.ArgumentError, match=message):
        as_adapter(audit_backends.ragged_paged, device="cpu", **changes)


OPTIONS = Adapter(audit_backends.ragged_with_options, takes=("window_size", "sinks", "softcap", "alibi_slopes", "out", "lse"))


@pytest.mark.parametrize("option, case, kind", [
    ("window_size", Case(kv_lens=(40, 70, 5), window=(3, 1)), "the window is ignored"),
    ("sinks", Case(sinks=True), "sinks are ignored"),
    ("softcap", Case(softcap=2.0), "softcap is ignored"),
    ("alibi_slopes", Case(alibi=True), "alibi_slopes are ignored"),
    ("scale", Case(scale=1.7), "scale is ignored"),
    ("causal", Case(causal=True), "the causal mask is ignored"),
])  # fmt: skip
def test_option_that_is_ignored_is_named(option: str, case: Case, kind: str) -> None:
    plain = {"scale": 32**-0.5, "causal": False}

    def ignoring(*tensors: Any, **given: Any) -> Any:
        rest = {name: value for name, value in given.items() if name != option}
        return audit_backends.ragged_with_options(*tensors, **{**rest, **({option: plain[option]} if option in plain else {})})

    assert check_lse(case, OPTIONS) == []
    assert [fault.kind for fault in check_lse(case, Adapter(ignoring, takes=OPTIONS.takes))] == [kind]


def test_window_without_the_own_key_is_off_by_one() -> None:
    """A window that is one key too short is reported as off by one (huggingface/transformers#39408)."""

    def one_less(*tensors: Any, window_size: Any = (-1, -1), **given: Any) -> Any:
        return audit_backends.ragged_with_options(*tensors, window_size=(window_size[0] - 1, window_size[1]), **given)

    case = Case(kv_lens=(40, 70, 5), window=(3, 0))
    assert [fault.kind for fault in check_lse(case, Adapter(one_less, takes=OPTIONS.takes))] == ["the window is off by one"]


def test_scales_that_are_swapped_are_named() -> None:
    def swapped(*tensors: Any, k_scale: float, v_scale: float, **given: Any) -> Any:
        return audit_backends.ragged_paged(*tensors, k_scale=v_scale, v_scale=k_scale, **given)

    adapter = Adapter(swapped, "ragged_paged", takes=("k_scale", "v_scale"), kv_dtype="float8_e4m3fn")
    assert [fault.kind for fault in check_lse(Case(before="none", k_scale=0.37, v_scale=1.9), adapter)] == ["k_scale and v_scale are swapped"]


class OverflowsToNan(audit_backends.Planned):
    def store(self, k: Any, v: Any, k_cache: Any, v_cache: Any, *, slot_mapping: Any, k_scale: float = 1.0, v_scale: float = 1.0) -> None:
        k = torch.where(k.abs() / k_scale > 448, torch.nan, k)
        super().store(k, v, k_cache, v_cache, slot_mapping=slot_mapping, k_scale=k_scale, v_scale=torch.tensor(v_scale))


class DropsNan(audit_backends.Planned):
    def store(self, k: Any, v: Any, *caches: Any, **given: Any) -> None:
        super().store(k.nan_to_num(448.0), v.nan_to_num(448.0), *caches, **given)


class WritesSlotMinusOne(audit_backends.Planned):
    def store(self, k: Any, v: Any, *caches: Any, slot_mapping: Any, **given: Any) -> None:
        super().store(k, v, *caches, slot_mapping=slot_mapping % (caches[0].shape[0] * caches[0].shape[1]), **given)


@pytest.mark.parametrize("backend, kind", [
    (audit_planted.Truncates, "k is not rounded to nearest"),
    (OverflowsToNan, ""),
    (DropsNan, "a NaN in v is not kept"),
    (WritesSlotMinusOne, "another slot of the k cache was written"),
])  # fmt: skip
def test_cache_writer_is_checked(backend: Any, kind: str) -> None:
    case = Case(q_lens=(1, 1), kv_lens=(19, 5), pad_requests=2, k_scale=0.001 if backend is OverflowsToNan else 0.37, v_scale=1.9)
    for fp8 in ("float8_e4m3fn", "float8_e5m2"):
        adapter = as_adapter(audit_backends.Planned, device="cpu", kv_dtype=fp8)
        assert write(case, adapter) == []
        kinds = [fault.kind for fault in write(case, as_adapter(backend, device="cpu", kv_dtype=fp8))]
        assert kind in kinds if kind else kinds, kinds


def test_calls_of_two_streams_have_their_own_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend whose calls share an output is found. Streams are replaced by stubs, so no GPU is needed."""
    monkeypatch.setattr(torch.cuda, "Stream", lambda: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    shared: list[Any] = []

    def one_output(*tensors: Any, out: Any = None, lse: Any = None, **given: Any) -> Any:
        shared.append(audit_backends.ragged(*tensors, **given))
        return tuple(into.copy_(rows) for into, rows in zip(shared[0], shared[-1]))

    case = Case(before="none", after="streams")
    assert after_others(case, Adapter(audit_backends.ragged)) == []
    assert [fault.kind for fault in after_others(case, Adapter(one_output))] == ["live rows, beside a call of another stream"]


def test_least_alignment_is_the_documented_one() -> None:
    """Pointers and strides of heads are odd multiples of the documented alignment, so they have no larger alignment."""
    seen: list[Any] = []

    def note(q: Any, k: Any, v: Any, **given: Any) -> Any:
        seen.append([(x.data_ptr() % 64, x.stride(1) * x.element_size() % 64) for x in (q, k, v, given["out"])])
        return audit_backends.ragged(q, k, v, **given)

    for alignment, least in ((0, 2), (16, 16)):
        assert check_call(Case(layout="odd"), Adapter(note, takes=("out", "lse"), dtype="bfloat16", alignment_bytes=alignment)) == []
        assert all(pointer % (2 * least) == least for pointer, _ in seen[-1]), seen[-1]
        assert all(stride % (2 * least) == least for _, stride in seen[-1]), seen[-1]


def test_sink_is_the_lse_of_a_row_without_keys() -> None:
    """If the lse includes sinks (C5), a row without keys must have the sink as its lse."""

    def with_sinks(*tensors: Any, sinks: Any = None, **given: Any) -> Any:
        out, lse = audit_backends.ragged_with_options(*tensors, sinks=sinks, **given)
        return out, lse if sinks is None else torch.logaddexp(lse, sinks.expand_as(lse))

    def sentinel(*tensors: Any, sinks: Any = None, **given: Any) -> Any:
        out, lse = audit_backends.ragged_with_options(*tensors, sinks=sinks, **given)
        return out, lse if sinks is None else torch.where(lse > -torch.inf, torch.logaddexp(lse, sinks.expand_as(lse)), -torch.inf)

    case = Case(kv_lens=(5, 0, 4), sinks=True, before="none")
    assert check_call(case, Adapter(with_sinks, takes=("sinks",), lse_has_sinks=True)) == []
    assert [fault.kind for fault in check_call(case, Adapter(sentinel, takes=("sinks",), lse_has_sinks=True))] == ["lse of rows without keys"]


def test_page_has_the_table_of_cases() -> None:
    page = (ROOT / "docs/Audit.md").read_text(encoding="utf-8")
    table = CASES.search(page)
    assert table, "docs/Audit.md: expected the marks of the table of cases"
    words, wanted = (["".join(line.split()) for line in text.splitlines() if set(line) - set("|-: ")] for text in (table[0], write_cases()))
    words = words[1:-1]
    assert words == wanted, "expected the table of python -m mlafix audit --cases docs/Audit.md"


def test_clauses_are_those_of_the_contract() -> None:
    page = (ROOT / "docs/Contract.md").read_text(encoding="utf-8")
    for number, name in CLAUSES.items():
        assert f'<a id="{number.lower()}"></a>**{number}** {name} |' in page, f"docs/Contract.md: expected {number} {name}"
    assert all(clause in CLAUSES for check in CHECKS.values() for clause in check.clauses)
