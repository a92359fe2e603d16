"""Axioms about the functions that a solver does not know.

`ex2`, `lg2` and `rcp` are the GPU's approximations. The solver only knows that equal operands have equal results, and
the facts below. All facts but one follow from the error bounds and special values in PTX's manual. The other fact is
that `rcp.approx` of 1 is 1. The GPU tests check this fact, since a merge with one live state must copy that state (rule
N4 of docs/Dialect.md).
"""

from __future__ import annotations

from bitwuzla import Kind


class Approximations:
    """The applications of approximate functions on one path of a program, and facts about their results."""

    def __init__(self, floats) -> None:  # floats: solver.Floats
        self.floats = floats
        self.seen: dict[str, list[tuple[object, object]]] = {}
        self.facts: list[object] = []

    def copy(self) -> Approximations:
        other = Approximations(self.floats)
        other.seen, other.facts = {function: list(known) for function, known in self.seen.items()}, list(self.facts)
        return other

    def apply(self, function: str, operand: object) -> object:
        for known, result in self.seen.setdefault(function, []):
            if known is operand or known == operand:
                return result
        f = self.floats
        result = f.fresh(f"{function}_{len(self.seen[function])}")
        for known, other in self.seen[function]:
            self.facts.append(f.implies(f.same(known, operand), f.same(other, result)))
        self.seen[function].append((operand, result))
        self.facts.extend(self.of(function, operand, result))
        return result

    def of(self, function: str, operand: object, result: object) -> list[object]:
        """Returns the facts about one application that do not involve other applications."""
        facts: list[object] = getattr(self, "_" + function)(operand, result)
        return facts

    def _nan(self, x: object, y: object) -> object:
        f = self.floats
        return f.iff(f.is_nan(x), f.is_nan(y))

    def _ex2(self, x: object, y: object) -> list[object]:
        """y = 2^x is NaN only for NaN, never negative, 0 for x < -152, 1 for zeros, at most 1 for x <= 0, and at least
        1 for x >= 0."""
        f = self.floats
        positive = f.negate(f.term(Kind.FP_IS_NEG, y))
        return [
            self._nan(x, y),
            f.implies(f.negate(f.is_nan(x)), positive),
            f.implies(f.term(Kind.FP_IS_ZERO, x), f.same(y, f.number(1.0))),
            f.implies(f.term(Kind.FP_LEQ, x, f.number(0.0)), f.term(Kind.FP_LEQ, y, f.number(1.0))),
            f.implies(f.term(Kind.FP_GEQ, x, f.number(0.0)), f.term(Kind.FP_GEQ, y, f.number(1.0))),
            f.implies(f.term(Kind.FP_LT, x, f.number(-152.0)), f.same(y, f.number(0.0))),
        ]

    def _lg2(self, x: object, y: object) -> list[object]:
        """y = log2(x) is NaN for NaN, and in [0, 4] for x in [1, 16]. A sum of 1 to 16 weights is in [1, 16]."""
        f = self.floats
        between = f.both(f.term(Kind.FP_GEQ, x, f.number(1.0)), f.term(Kind.FP_LEQ, x, f.number(16.0)))
        inside = f.both(f.term(Kind.FP_GEQ, y, f.number(0.0)), f.term(Kind.FP_LEQ, y, f.number(4.0)))
        return [f.implies(f.is_nan(x), f.is_nan(y)), f.implies(between, inside)]

    def _rcp(self, x: object, y: object) -> list[object]:
        """y = 1 / x is NaN only for NaN and 1 for 1. For x in [1, 16], the range of a sum of weights, y is in
        [1/32, 1]."""
        f = self.floats
        between = f.both(f.term(Kind.FP_GEQ, x, f.number(1.0)), f.term(Kind.FP_LEQ, x, f.number(16.0)))
        inside = f.both(f.term(Kind.FP_GEQ, y, f.number(1 / 32)), f.term(Kind.FP_LEQ, y, f.number(1.0)))
        return [
            self._nan(x, y),
            f.implies(f.same(x, f.number(1.0)), f.same(y, f.number(1.0))),
            f.implies(between, inside),
        ]
