"""Expresses the contract of docs/Dialect.md (N1 to N6) as formulas on one element of a merged row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bitwuzla import Bitwuzla, Kind, Option, Options, Result
from calls import Call, Program
from solver import Floats
from symbolic import Machine, Path

# A state whose lse (base e) is this far below the largest lse has the weight 2^x with x < -152, which is 0 in f32.
_FAR = 200.0


def call_names(call: Call) -> dict[tuple[str, int], str]:
    """Returns the names of the lse and of the payload's elements of each state, by (tensor, offset in bytes)."""
    same = dict(call.same)
    names = {}
    for i, ((payload, first), (lse, at)) in enumerate(call.states):
        names[same.get(lse, lse), 4 * at] = f"lse {i}"
        names.update({(same.get(payload, payload), 4 * (first + j)): f"payload {i}[{j}]" for j in range(128)})
    return names


@dataclass
class Query:
    name: str
    given: list[object]
    claim: object
    example: tuple[object, ...] = ()
    """Claims that give each lse a concrete value, so that `given` holds."""


class Row:
    """The states of a call and its results, as terms of the solver. The terms have the names of `call_names`, so state
    i has the same term in all kernels, and kernels can share proofs."""

    def __init__(self, floats: Floats, call: Call, path: Path) -> None:
        self.floats = floats
        self.inputs = {name: floats.fresh(name) for i in range(len(call.states)) for name in (f"payload {i}[0]", f"lse {i}")}
        self.payloads, self.lses = list(self.inputs.values())[::2], list(self.inputs.values())[1::2]
        self.out, self.lse = (self._result(path, (tensor, 0), call_names(call)) for tensor in (call.out, call.lse))

    def _result(self, path: Path, place: tuple[str, int], names: dict[tuple[str, int], str]) -> object:
        """Returns the value of an element of a result after the call. If the path does not write the element, this is
        its value before the call. In a call in place, that is an element of a state. In other calls, it is a free term,
        so that claims about it fail."""
        return path.stores.get(place) or self.floats.fresh(names.get(place, f"{place[0]}[{place[1]}]"))

    def queries(self) -> Iterator[Query]:
        f = self.floats
        empty = [f.is_inf(lse) for lse in self.lses]  # N2: an empty state's lse is infinite, with either sign
        live = [f.negate(term) for term in empty]
        nan = [f.is_nan(lse) for lse in self.lses]
        identity = f.both(f.same(self.out, f.number(0.0)), f.same(self.lse, f.number(float("-inf"))))
        yield Query("N3: all empty gives the identity", empty, identity)
        for i, (payload, lse) in enumerate(zip(self.payloads, self.lses, strict=True)):
            others = [term for j, term in enumerate(empty) if j != i]
            copy = f.both(f.same(self.out, payload), f.same(self.lse, lse))
            example = tuple(f.same(other, f.number(0.0 if j == i else float("-inf"))) for j, other in enumerate(self.lses))
            yield Query(f"N4: only state {i} is live", [*others, live[i], f.negate(nan[i])], copy, example)
            far = [self._is_far_below(other, lse) for j, other in enumerate(self.lses) if j != i]
            if far:
                example = tuple(f.same(other, f.number(0.0 if j == i else -2 * _FAR)) for j, other in enumerate(self.lses))
                yield Query(f"N5: the weights of all but state {i} are zero", [live[i], f.negate(nan[i]), *far], copy, example)
            yield Query(f"N6: the lse of state {i} is NaN", [nan[i]], f.both(f.is_nan(self.out), f.is_nan(self.lse)))

    def _is_far_below(self, lse: object, largest: object) -> object:
        f = self.floats
        limit = f.term(Kind.FP_SUB, largest, f.number(_FAR), rounds=True)
        small = f.term(Kind.FP_LEQ, f.term(Kind.FP_ABS, largest), f.number(2.0**20))  # for such lses, rounding changes `limit` only a little
        return f.both(small, f.term(Kind.FP_LEQ, lse, limit), f.negate(f.is_inf(lse)))

    def finite(self) -> Query:
        """Returns the query whose claim is that finite states give no NaN. Payloads are at most a quarter of the
        format's largest number, and the lses are any finite numbers."""
        f = self.floats
        bound = f.number(2.0**126 if f.sorts["float"].fp_exp_size() == 8 else 2.0**14)
        given = [f.term(Kind.FP_LEQ, f.term(Kind.FP_ABS, payload), bound) for payload in self.payloads]
        given += [f.both(f.negate(f.is_nan(lse)), f.negate(f.is_inf(lse))) for lse in self.lses]
        return Query("finite states give no NaN", given, f.negate(f.either(f.is_nan(self.out), f.is_nan(self.lse))))


@dataclass
class Answer:
    """The answer to a query. `proved` is None if the solver did not finish in time. If `proved` is False, `inputs` is a
    counterexample."""

    query: str
    proved: bool | None
    inputs: dict[str, str]


def solve(floats: Floats, formula: frozenset[object], seconds: float) -> tuple[Result, Bitwuzla | None]:
    """Checks whether the formula is satisfiable. Returns the result and the solver. Stores an unsatisfiable formula in
    `floats.proved`. If the formula is already there, runs no solver and returns None in place of the solver."""
    if formula in floats.proved:
        return Result.UNSAT, None
    options = Options()
    options.set(Option.PRODUCE_MODELS, True)
    options.set(Option.TIME_LIMIT_PER, int(1000 * seconds))
    solver = Bitwuzla(floats.manager, options)
    for term in formula:
        solver.assert_formula(term)
    result = solver.check_sat()
    if result == Result.UNSAT:
        floats.proved.add(formula)
    return result, solver


def decided(floats: Floats, path: Path, query: Query, seconds: float) -> list[object]:
    """Returns claims that weights and reciprocals are 0 or 1. Each claim holds in the query's example, and is proved
    from `query.given` and the preceding claims.

    With these claims, the solver needs a fraction of the time for the query. The proofs of the claims omit the path's
    conditions for three reasons: no claim needs them, some conditions contain products that are slow to solve, and
    several paths share a formula that has no conditions.
    """
    result, example = solve(floats, frozenset([*path.conditions, *path.approximations.facts, *query.given, *query.example]), seconds)
    if result != Result.SAT or example is None:  # the call of the example takes another path
        return []
    found: list[object] = []
    for function in ("ex2", "rcp"):
        for operand, value in path.approximations.seen.get(function, []):
            known = [*query.given, *path.approximations.of(function, operand, value), *found]
            for claim in (floats.same(value, floats.number(number)) for number in (1.0, 0.0)):
                if example.get_value(claim).is_true() and solve(floats, frozenset([*known, floats.negate(claim)]), seconds)[0] == Result.UNSAT:
                    found.append(claim)
    return found


def ask(floats: Floats, path: Path, row: Row, query: Query, seconds: float = 300) -> Answer:
    """Returns the solver's answer. A formula that was proved before, even for another kernel, is not proved again."""
    given = [*path.conditions, *path.approximations.facts, *query.given]
    steps = decided(floats, path, query, seconds) if query.example else []
    result, solver = solve(floats, frozenset([*given, *steps, floats.negate(query.claim)]), seconds)
    if result != Result.SAT or solver is None:
        return Answer(query.name, True if result == Result.UNSAT else None, {})
    terms = {**row.inputs, "the result": row.out, "its lse": row.lse}
    return Answer(query.name, False, {name: str(solver.get_value(term)) for name, term in terms.items()})


def answers(call: Call, program: Program, floats: Floats, only: str = "", seconds: float = 300) -> Iterator[Answer]:
    """Yields the answers for each path of the program. `only` selects queries by a prefix of their names, such as "N4"."""
    machine = Machine(program.function, floats, program.registers, program.integers, call_names(call))
    for path in list(machine.run(program.arguments)):
        row = Row(floats, call, path)
        for query in [*row.queries(), row.finite()] if only == "finite" else row.queries():
            if query.name.startswith(only):
                yield ask(floats, path, row, query, seconds)
