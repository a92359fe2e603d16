"""Proves that the generated code of the library's merges satisfies the contract for all floats. The proofs use LLVM IR
after all optimisations.

The dead-payload, NaN and identity rules (N1 to N6 of docs/Dialect.md) are proved in f32. Another test proves that
finite states never give NaN. It runs only with MLAFIX_SLOW_PROOFS=1, and uses a format of 16 bits in place of f32,
since the proof then takes minutes rather than hours.
"""

from __future__ import annotations

import os
import re

import pytest
from calls import CALLS, Call, compiled, program
from contract import answers
from solver import Floats

_COMPILER = os.environ.get("MLAFIX_OPT", "mlafix-opt")
_SLOW = pytest.mark.skipif(os.environ.get("MLAFIX_SLOW_PROOFS") != "1", reason="takes long: MLAFIX_SLOW_PROOFS=1 runs it")


@pytest.fixture(scope="module")
def floats() -> Floats:
    """Makes f32 terms and stores the proved formulas. The tests share this object, so they prove each formula once."""
    return Floats()


@pytest.mark.parametrize("call", [pytest.param(call, id=str(call), marks=[_SLOW] if call.is_slow else []) for call in CALLS])
def test_contract(floats: Floats, call: Call) -> None:
    found = list(answers(call, program(_COMPILER, call), floats))
    assert found
    assert [answer for answer in found if not answer.proved] == []


@_SLOW
@pytest.mark.parametrize("call", CALLS[:1], ids=str)
def test_finite_states_give_no_nan(call: Call) -> None:
    found = list(answers(call, program(_COMPILER, call), Floats(5, 11), only="finite", seconds=3600))
    assert found
    assert [answer for answer in found if not answer.proved] == []


@pytest.mark.parametrize("state, is_kept", [(0, True), (1, False)])
def test_a_row_in_place_that_is_not_written_keeps_its_state(floats: Floats, state: int, is_kept: bool) -> None:
    call = next(call for call in CALLS if call.kernel == "merge_state_in_place")
    text, count = re.subn(r"^  store .*$", "", compiled(_COMPILER, call.kernel, call.bindings)[0], flags=re.MULTILINE)
    assert count
    found = list(answers(call, program(_COMPILER, call, text), floats, only=f"N4: only state {state}"))
    assert {answer.proved for answer in found} == {is_kept}


# Lowerings with one fault: the replaced text, its replacement, and the rule that the fault violates.
_BROKEN = {
    "a dead payload is multiplied": (r"select i1 %\S+, (<1 x float> splat \(float -0)", r"select i1 false, \1", "N4"),
    "the maximum drops NaN": (r"@llvm\.maximum\.", "@llvm.maxnum.", "N6"),
    "both empty is no case": (r"select i1 %\S+, (<1 x float> zeroinitializer, )", r"select i1 false, \1", "N3"),
    "an lse of +inf is no empty state": (r"select i1 %\S+, (float 0xFFF0000000000000, float)", r"select i1 false, \1", "N3"),
}


@pytest.mark.parametrize("fault", _BROKEN)
def test_broken_lowering_is_refuted(floats: Floats, fault: str) -> None:
    pattern, replacement, rule = _BROKEN[fault]
    call = CALLS[0]
    text, count = re.subn(pattern, replacement, compiled(_COMPILER, call.kernel, call.bindings)[0])
    assert count
    found = list(answers(call, program(_COMPILER, call, text), floats, only=rule))
    refuted = [answer for answer in found if answer.proved is False]
    assert refuted, found
    assert refuted[0].inputs
