"""Functions of one float. Written by scripts/gen-functions from include/mlafix/Functions.def: edit that."""

from .built_ins import BuiltIn

__all__ = [
    "ceil",
    "cos",
    "erf",
    "exp",
    "exp2",
    "floor",
    "log",
    "log2",
    "rsqrt",
    "sin",
    "sqrt",
    "tanh",
    "trunc",
]

exp = BuiltIn("exp", "exp(x)", "e to the power of x. For f32, scalars and rows.")
exp2 = BuiltIn("exp2", "exp2(x)", "2 to the power of x. For f32, scalars and rows.")
log = BuiltIn("log", "log(x)", "natural logarithm. For f32, scalars and rows.")
log2 = BuiltIn("log2", "log2(x)", "logarithm in base 2. For f32, scalars and rows.")
sqrt = BuiltIn("sqrt", "sqrt(x)", "square root. For f32, scalars and rows.")
rsqrt = BuiltIn("rsqrt", "rsqrt(x)", "1 / sqrt(x). For f32, scalars and rows.")
tanh = BuiltIn("tanh", "tanh(x)", "hyperbolic tangent. For f32, scalars and rows.")
floor = BuiltIn("floor", "floor(x)", "the largest integer that is not above x. For f32, scalars and rows.")
ceil = BuiltIn("ceil", "ceil(x)", "the smallest integer that is not below x. For f32, scalars and rows.")
trunc = BuiltIn("trunc", "trunc(x)", "the integer nearest to x that is not farther from 0. For f32, scalars and rows.")
sin = BuiltIn("sin", "sin(x)", "sine, to an absolute error of 2e-7 for |x| up to 2^23, and NaN beyond. For f32, scalars and rows.")
cos = BuiltIn("cos", "cos(x)", "cosine, to an absolute error of 2e-7 for |x| up to 2^23, and NaN beyond. For f32, scalars and rows.")
erf = BuiltIn("erf", "erf(x)", "the error function. For f32, scalars and rows.")

UNARY = frozenset(__all__)
"""The functions that this module defines. For the other functions in include/mlafix/Functions.def, a kernel calls
Python's built-in of that name."""

NAMES = (
    "exp",
    "exp2",
    "log",
    "log2",
    "sqrt",
    "rsqrt",
    "tanh",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sin",
    "cos",
    "erf",
)
"""All functions in include/mlafix/Functions.def, in the order of that file."""
