"""Tests the output of audits (cards, JSON, pages, comparisons, scripts), the command, the pytest plugin, and errors."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import audit_backends  # noqa: E402
import audit_faults  # noqa: E402
from audit_forks import forked  # noqa: E402

import mlafix  # noqa: E402
from mlafix.__main__ import main  # noqa: E402
from mlafix.audit import CHECKS, SCHEMA, Adapter, Limits, Report, audit, compare, write_page  # noqa: E402
from mlafix.audit.adapter import as_adapter  # noqa: E402
from mlafix.audit.adapters import MODULES, ready  # noqa: E402
from mlafix.audit.bundle import Bundle  # noqa: E402
from mlafix.audit.cases import Case, StateCase  # noqa: E402
from mlafix.audit.checks import fit  # noqa: E402
from mlafix.audit.checks.graphs import contents  # noqa: E402
from mlafix.audit.checks.lse import check_lse  # noqa: E402
from mlafix.audit.forms import poisoned_memory  # noqa: E402
from mlafix.audit.judge import check_call  # noqa: E402
from mlafix.audit.reports import OF_CHECK  # noqa: E402
from mlafix.audit.runner import Run  # noqa: E402
from mlafix.audit.state_forms import run_states  # noqa: E402
from mlafix.audit.worker import packed, unpacked  # noqa: E402

PATIENT = Limits(check=600.0, total=6000.0, case=120.0, first=600.0, shrink=0.2, repair=0.1)
ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def stale() -> Report:
    """Returns the report of a backend that does not write rows without keys."""
    return audit(audit_faults.stale_rows, device="cpu", checks=["A0", "A1", "A7"], limits=PATIENT, progress=False, form="ragged", takes=("out", "lse"))


@pytest.fixture(scope="module")
def good() -> Report:
    return audit(audit_backends.ragged, device="cpu", checks=["A0", "A1", "A7"], limits=PATIENT, progress=False)


def matches(value: Any, schema: dict[str, Any], at: str = "report") -> None:
    """Asserts that a value matches a JSON schema. Knows only those parts of the schema language that SCHEMA uses."""
    if "anyOf" in schema:
        schema = schema["anyOf"][0 if value is None else 1]
    kinds = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "null": type(None)}
    if "type" in schema:
        assert isinstance(value, kinds[schema["type"]]), f"{at}: expected {schema['type']}, got {value!r}"
    assert value == schema.get("const", value) and value in schema.get("enum", [value]), f"{at}: {value!r}"
    for name in schema.get("required", ()):
        assert name in value, f"{at}: expected {name}, got {sorted(value)}"
    for name, inner in schema.get("properties", {}).items():
        if name in value:
            matches(value[name], inner, f"{at}.{name}")
    for index, item in enumerate(value if "items" in schema else ()):
        matches(item, schema["items"], f"{at}[{index}]")


def test_card_has_a_line_for_each_check_and_says_what_was_found(stale: Report) -> None:
    text = str(stale)
    assert stale.summary().startswith("stale_rows: 1 of 2 checks hold; A1 does not (float32, torch ")
    for words in ("A0   a plain call", "A7   replays", "no GPU", "A1 error: rows without keys", "expected out[0, 0, 0] of 0", "ops.fixup_zero_kv_rows(out, lse"):
        assert words in text, text
    assert stale.status == 1


def test_json_has_the_schema_and_comes_back(stale: Report) -> None:
    text = stale.to_json()
    matches(json.loads(text), SCHEMA)
    assert sum('"check": ' in line for line in text.splitlines()) == len(stale.outcomes), "expected a line for each check"
    assert Report.from_json(text) == stale


@pytest.mark.parametrize("text, message", [
    ("", "expected the JSON of a report, got JSONDecodeError"),
    ("[]", "expected the JSON of a report, got TypeError"),
    ("{}", "expected the JSON of a report, got KeyError: 'version'"),
    ('{"version": 99}', r"^expected a report of version \d+, got 99$"),
])  # fmt: skip
def test_other_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(mlafix.ArgumentError, match=message):
        Report.from_json(text)


def test_comparison_names_what_has_changed(stale: Report, good: Report) -> None:
    assert compare(good, stale) == ["A1: holds, now does not hold", "A1: new finding: rows without keys"]
    assert compare(stale, good) == ["A1: does not hold, now holds", "A1: finding gone: rows without keys"]
    assert compare(good, good) == []
    newer = replace(good, machine={**good.machine, "torch": "9.9"})
    assert compare(good, newer) == [f"torch: {good.machine['torch']}, now 9.9"]


def test_page_has_backends_down_and_needs_nothing_but_itself(stale: Report, good: Report) -> None:
    page = write_page([stale, good])
    head, _, rest = page.partition("</thead>")
    assert "<small>Rows without keys</small>" in head and "<th>cases</th><th>waived</th>" in head
    assert rest.index("stale_rows</a>") < rest.index("ragged</a>")
    assert f"<td>{stale.cases}</td>" in page
    assert "which sequences have no keys</td><td>12</td>" in page
    assert "rows without keys" in page
    assert "&lt;" in page or "<pre>" in page
    links = re.findall(r'<a href="(https://[^"]+)">', page)
    assert "https://github.com/flashinfer-ai/flashinfer/issues/2409" in links
    assert not re.search(r"<(script|link|img)|src=|@import|url\(", page), "expected a page that loads nothing"


def test_script_fails_without_mlafix_and_passes_on_a_repaired_backend(stale: Report, tmp_path: Path) -> None:
    script = stale.findings[0].script
    for name, text in (("fails", script), ("passes", script.replace("audit_faults import stale_rows", "audit_backends import ragged"))):
        (tmp_path / name).write_text(text)
    def both() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "mlafix"]:
            sys.modules[name] = None  # type: ignore[assignment]
        for name in ("fails", "passes"):
            try:
                runpy.run_path(str(tmp_path / name), run_name="__main__")
            except SystemExit as end:
                print(name, end.code)

    status, text = forked(both, tmp_path / "output")
    assert status == 0, text
    failing, _, passing = text.partition("fails 1\n")
    assert "out[0, 0, 0]: expected 0, got 7" in failing, text
    assert "expected" not in passing and passing.endswith("passes 0\n"), text


def test_script_imports_names_as_the_adapter_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "aliases.py").write_text("import os.path\nimport numpy as np\nfrom math import pi, sqrt as root\ndef f():\n    return root(np.abs(pi)), os\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    bundle = Bundle({})
    bundle.add("aliases", "f")
    assert bundle.imports == {"import os.path", "import numpy as np", "from math import pi", "from math import sqrt as root"}


def test_table_is_filled_into_a_page(stale: Report, good: Report, tmp_path: Path) -> None:
    for report in (stale, good):
        (tmp_path / f"{report.backend}.json").write_text(report.to_json(scripts=False))
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- audit: begin -->\nformer\n<!-- audit: end -->\nafter\n")
    assert main(["audit", "--from", str(tmp_path), "--markdown", str(page)]) == 0
    text = page.read_text()
    assert "| ragged | float32 | holds | holds | not run |" in text, text
    assert "| stale_rows | float32 | holds | **no** | not run |" in text
    assert "| stale_rows | A1 | error: rows without keys | `Case(" in text
    assert "former" not in text and text.startswith("before") and text.endswith("after\n")


def test_cases_travel_as_json() -> None:
    for case in (Case(q_lens=(1, 2), sinks=True), StateCase(empty=((0, 1),), empty_lse=float("inf"), shift=-5e4)):
        assert unpacked(json.loads(json.dumps(packed(case), allow_nan=False))) == case


def test_every_check_has_reports_and_a_section() -> None:
    page = (ROOT / "docs/Audit.md").read_text(encoding="utf-8")
    for number, check in CHECKS.items():
        assert f"### {number}: {check.title}" in page, number
        assert OF_CHECK[number] or number == "A0"
        section = page.partition(f"### {number}:")[2].partition("###")[0]
        for report in OF_CHECK[number]:
            assert report in section, f"{number}: expected {report} in docs/Audit.md"


def test_command_writes_what_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    files = [str(tmp_path / name) for name in ("report.json", "page.html", "scripts")]
    given = ["audit", "audit_faults:stale_rows", "--device", "cpu", "--check", "A1", "--set", "form=ragged", "--set", "takes=out,lse"]
    assert main([*given, "--json", files[0], "--html", files[1], "--scripts", files[2]]) == 1
    assert "A1 error: rows without keys" in capsys.readouterr().out
    report = Report.from_json(Path(files[0]).read_text())
    assert [finding.kind for finding in report.findings] == ["rows without keys"]
    assert Path(files[1]).read_text().startswith("<!DOCTYPE html>")
    assert [path.read_text() for path in Path(files[2]).iterdir()] == [report.findings[0].script]
    assert main([*given, "--compare", files[0]]) == 0, "expected status 0 where no finding is new"
    assert "nothing has changed" in capsys.readouterr().out
    assert main(["audit", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


def test_command_names_the_file_that_has_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "old.json").write_text('{"version": 99}')
    assert main(["audit", "--from", str(tmp_path)]) == 1
    assert f"{tmp_path / 'old.json'}: expected a report of version" in capsys.readouterr().err


@pytest.mark.parametrize("given, message", [
    (["audit"], "expected one of MODULE:FUNCTION, --ready and --from, got none"),
    (["audit", "audit_backends:ragged", "--ready"], "got several"),
    (["audit", "audit_backends"], "expected MODULE:FUNCTION"),
    (["audit", "audit_backends:nothing"], "expected a function that can be imported"),
    (["audit", "audit_backends:ragged", "--set", "form"], "--set: expected FIELD=VALUE"),
    (["audit", "audit_backends:ragged", "--set", "form=round"], "form: expected one of ragged, dense"),
    (["audit", "audit_backends:ragged", "--set", "size=3"], "expected a field of Adapter"),
    (["audit", "audit_backends:ragged", "--check", "A99"], "checks: expected some of A0, A1"),
])  # fmt: skip
def test_command_refuses(given: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    assert main(given) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("changes", [{"kv_heads": 3}, {"dtype": "f32"}, {"lse_base": "10"}, {"takes": ("mask",)}])
def test_adapters_that_make_no_sense_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(mlafix.ArgumentError, match=f"{next(iter(changes))}: expected"):
        as_adapter(audit_backends.ragged, device="cpu", **changes)


def test_form_is_read_from_the_names_of_parameters() -> None:
    forms = {name: as_adapter(getattr(audit_backends, name), device="cpu").form for name in ("ragged", "dense", "paged", "merge", "reduce")}
    assert list(forms) == list(forms.values())
    assert as_adapter(audit_backends.ragged, device="cpu").takes == ("out", "lse", "window", "sinks")


def test_backend_that_cannot_be_imported_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_elsewhere.py").write_text("import sys\nif 'pytest' not in sys.modules:\n    raise OSError('no such card')\ndef call(q, k, v, *, scale): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import broken_elsewhere  # type: ignore[import-not-found]

    with pytest.raises(mlafix.ArgumentError, match="expected a backend that can be imported and called, got: .*no such card"):
        audit(broken_elsewhere.call, device="cpu", progress=False)


def test_module_that_audits_itself_on_import_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "audits_itself.py"
    file.write_text("from audit_backends import ragged\nfrom mlafix.audit import audit\n"
                    "def mine(q, k, v, **given):\n    return ragged(q, k, v, **given)\n"
                    "audit(mine, form='ragged', device='cpu', checks=['A0'])\n")  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path))
    status, text = forked(lambda: runpy.run_path(str(file), run_name="__main__"), tmp_path / "output")
    assert status
    assert "expected audit() below if __name__ == '__main__':, got a call while the module is imported" in text, text


def test_interrupted_audit_leaves_nothing_to_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Run, *_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Run, "take", interrupt)
        audit(audit_backends.ragged, device="cpu", checks=["A0"], progress=False)
    report = audit(audit_backends.ragged, device="cpu", checks=["A1"], limits=PATIENT, progress=False)
    assert [(outcome.check, outcome.status) for outcome in report.outcomes] == [("A1", "holds")]


def test_error_is_that_of_the_rank_that_failed_first() -> None:
    def reduce(out: Any, lse: Any, *, group: Any) -> Any:
        if torch.distributed.get_rank(group) == 1:
            raise ValueError("no rows today")
        return audit_backends.reduce(out, lse, group=group)

    adapter = as_adapter(reduce, device="cpu")
    with pytest.raises(RuntimeError, match="^rank 1: ValueError: no rows today$"):
        run_states(StateCase(), adapter)


def test_new_memory_is_nan() -> None:
    with poisoned_memory():
        assert torch.empty(3).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()


def test_bounds_are_not_wide() -> None:
    """A relative error of 2^-11 in f32 is a fault. A tolerance of 1e-3 would not find it."""

    def off(q: Any, k: Any, v: Any, **given: Any) -> Any:
        out, lse = audit_backends.ragged(q, k, v, **given)
        return out * (1 + 2.0**-11), lse

    def lse_off(q: Any, k: Any, v: Any, **given: Any) -> Any:
        out, lse = audit_backends.ragged(q, k, v, **given)
        return out, lse + 2.0**-11

    right = Adapter(audit_backends.ragged, takes=("out", "lse"))
    assert check_call(Case(), right) == []
    assert [fault.kind for fault in check_call(Case(), replace(right, call=off))] == ["live rows"]
    assert [fault.kind for fault in check_lse(Case(), replace(right, call=lse_off))] == ["lse of live rows"]


def test_ready_adapters_run_where_their_package_is(monkeypatch: pytest.MonkeyPatch) -> None:
    adapters, missing = ready("cpu")
    names = [adapter.name for adapter in adapters]
    assert "SDPA math, lengths as a mask" in names and "mlafix merge_attn_states" in names
    assert set(missing) <= {name for name, _ in MODULES}
    assert all(adapter.device == "cpu" for adapter in adapters)
    assert len(names) == len(set(names))


def test_ready_adapters_fit_their_functions() -> None:
    """The plain call of each installed adapter is correct. The exception is jax with bf16 inputs, whose lse is bf16."""
    for adapter in ready("cpu")[0]:
        if adapter.form != "reduce":
            case = CHECKS["A0"].cases(adapter)[0]
            kinds = [fault.kind for fault in CHECKS["A0"].faults(adapter)(case, adapter)]
            assert kinds == (["dtype of the lse"] if adapter.name.startswith("jax") and adapter.dtype == "bfloat16" else []), adapter.name


@pytest.mark.parametrize("q_len, kv_len", [(3, 7), (7, 3)])
def test_ready_adapters_say_where_a_causal_mask_ends(q_len: int, kv_len: int) -> None:
    others = {"bottom-right": "top-left", "top-left": "bottom-right"}
    adapters = [adapter for adapter in ready("cpu")[0] if adapter.name.startswith("SDPA")]
    assert {adapter.alignment for adapter in adapters} == set(others)
    for adapter in adapters:
        case = fit(Case(q_lens=(q_len,) * 2, kv_lens=(kv_len,) * 2, causal=True, kv_heads=adapter.kv_heads, dim=adapter.dim), adapter)
        assert case and check_call(case, adapter) == [], adapter.name
        assert check_call(case, replace(adapter, alignment=others[adapter.alignment])), f"{adapter.name}: expected a fault with the other end"


def test_replays_keep_the_lengths_that_are_shapes() -> None:
    case = Case(q_lens=(4, 4), kv_lens=(20, 20))
    lengths = {takes: {one.kv_lens for one in contents(case, Adapter(audit_backends.dense, "dense", takes=takes))} for takes in ((), ("seq_lens_k",))}
    assert lengths == {(): {(20, 20)}, ("seq_lens_k",): {(20, 20), (6, 6), (0, 6)}}


def test_ready_adapter_is_audited_with_its_own_text_in_the_script() -> None:
    adapter = next(adapter for adapter in ready("cpu")[0] if adapter.name.startswith("SDPA math"))
    report = audit(adapter, checks=["A4"], limits=PATIENT, progress=False)
    finding = report.findings[0]
    assert (finding.kind, finding.script_status, finding.repair and finding.repair["status"]) == ("live rows", "fails", "gone"), str(report)
    assert "backend = sdpa_math" in finding.script
    assert "import mlafix" not in finding.script and "from mlafix" not in finding.script


def test_package_imports_neither_audit_nor_torch() -> None:
    code = "import sys, mlafix; print([name for name in sys.modules if name == 'torch' or name.startswith('mlafix.audit')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_command_says_that_it_needs_torch() -> None:
    code = "import sys; sys.modules['torch'] = None; from mlafix.__main__ import main; sys.exit(main(['audit', '--schema']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: audit: expected torch, got ") and done.stderr.endswith("; pip install torch\n"), done.stderr


def test_fields_of_adapters_are_in_the_page() -> None:
    page = (ROOT / "docs/Audit.md").read_text(encoding="utf-8")
    for field in fields(Adapter):
        assert f"`{field.name}`" in page, f"docs/Audit.md: expected {field.name}"
