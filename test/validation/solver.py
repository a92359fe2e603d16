"""Represents floats as terms of the solver Bitwuzla, with the operations that the contract and LLVM IR need."""

from __future__ import annotations

import struct

from bitwuzla import Kind, RoundingMode, TermManager

FORMATS = {"float": (8, 24), "half": (5, 11)}


class Floats:
    """Makes terms of floats. The sort "float" is f32 by default. A smaller format in its place makes proofs faster."""

    def __init__(self, exponent: int = 8, significand: int = 24) -> None:
        self.manager = TermManager()
        self.sorts = {name: self.manager.mk_fp_sort(*size) for name, size in FORMATS.items()}
        self.sorts["float"] = self.manager.mk_fp_sort(exponent, significand)
        self.nearest = self.manager.mk_rm_value(RoundingMode.RNE)
        self.inputs: dict[str, object] = {}
        self.proved: set[frozenset[object]] = set()  # formulas (sets of terms) that are proved unsatisfiable

    def term(self, kind: Kind, *operands: object, rounds: bool = False) -> object:
        return self.manager.mk_term(kind, [self.nearest, *operands] if rounds else list(operands))

    def fresh(self, name: str, type_: str = "float") -> object:
        if name not in self.inputs:
            self.inputs[name] = self.manager.mk_const(self.sorts[type_], name)
        return self.inputs[name]

    def number(self, value: float, type_: str = "float") -> object:
        if value != value:
            return self.manager.mk_fp_nan(self.sorts[type_])
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        wide = self.manager.mk_bv_value(self.manager.mk_bv_sort(64), bits)
        double = self.manager.mk_term(Kind.FP_TO_FP_FROM_BV, [wide], [11, 53])
        return self.convert(double, type_)

    def convert(self, value: object, type_: str) -> object:
        sort = self.sorts[type_]
        return self.manager.mk_term(Kind.FP_TO_FP_FROM_FP, [self.nearest, value], [sort.fp_exp_size(), sort.fp_sig_size()])

    def is_nan(self, x: object) -> object:
        return self.term(Kind.FP_IS_NAN, x)

    def is_inf(self, x: object) -> object:
        return self.term(Kind.FP_IS_INF, x)

    def same(self, x: object, y: object) -> object:
        """Returns the claim that x and y are the same number, with the same sign if they are zeros. All NaNs are
        equal."""
        return self.term(Kind.EQUAL, x, y)

    def implies(self, x: object, y: object) -> object:
        return self.term(Kind.IMPLIES, x, y)

    def iff(self, x: object, y: object) -> object:
        return self.term(Kind.IFF, x, y)

    def negate(self, x: object) -> object:
        return self.term(Kind.NOT, x)

    def both(self, *terms: object) -> object:
        return terms[0] if len(terms) == 1 else self.term(Kind.AND, *terms)

    def either(self, *terms: object) -> object:
        return terms[0] if len(terms) == 1 else self.term(Kind.OR, *terms)

    def choose(self, condition: object, x: object, y: object) -> object:
        return self.term(Kind.ITE, condition, x, y)

    def maximum(self, x: object, y: object) -> object:
        """Returns IEEE 754-2019 maximum: NaN if either operand is NaN, and +0 is greater than -0."""
        zeros = self.both(self.term(Kind.FP_IS_ZERO, x), self.term(Kind.FP_IS_ZERO, y))
        positive = self.choose(self.term(Kind.FP_IS_NEG, x), y, x)
        ordered = self.choose(zeros, positive, self.choose(self.term(Kind.FP_LT, x, y), y, x))
        return self.choose(self.either(self.is_nan(x), self.is_nan(y)), self.number(float("nan")), ordered)

    def maxnum(self, x: object, y: object) -> object:
        """Returns the larger operand, or the other operand if one is NaN."""
        larger = self.choose(self.term(Kind.FP_LT, x, y), y, x)
        return self.choose(self.is_nan(x), y, self.choose(self.is_nan(y), x, larger))
