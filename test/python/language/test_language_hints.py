"""Tests hints in errors: the name that was probably meant, the function that converts, the argument that binds a
name."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest
from sources import load, underlined

import mlafix

# The body of a grid over t, the text that the error underlines, and a part of the message.
BODIES = [
    ("q[t] = 1.5", "1.5", "expected i32 to store to 'q' (i32), got 1.5; i32(…) converts"),
    ("q[t] = 1.0", "1.0", "expected i32 to store to 'q' (i32), got 1.0; i32(…) converts"),
    ("q[t] = q[t] + 1.5", "1.5", "expected an integer of type i32, got 1.5; f32(…) converts to floats"),
    ("q[t] = 2**31", "2 ** 31", "; write 1 << 31"),
    ("q[t] = 10 ** 6", "10 ** 6", "; write 1000000"),
    ("y[t] = x[t] * 2 ** 0.5", "2 ** 0.5", "; write sqrt(2)"),
    ("y[t] = x[t, 0, 0]", "x[t, 0, 0]", "expected 1 index for a row of 'x' or 2 for an element, got 3"),
    ("s = load_state(l[t], x[t])", "l[t]", "expected a row for the payload of a state, which comes before its lse, got an element of 'l'"),
    ("s = load_state(x[t], x[t])", "x[t]", "expected an element for the lse of a state, which comes after its payload, got a row of 'x'"),
    ("store_state(load_state(x[t], l[t]), q[t], y[t])", "q[t]", "expected a row for the payload of a state"),
    ("s = load_state(x[t], h[t])", "h[t]", "expected an lse of f32, got 'h' of f16; declare it with f32"),
    ("s = load_state(x[t], d[t])", "d[t]", "expected an lse of f32, got 'd' of T"),
    # hints about states
    ("y[t] = load_state(x[t], l[t])", "load_state(x[t], l[t])",
     "expected a scalar or a row to store, got a state along D in base B; write store_state(…, y[…]), or y[…] = payload(…)"),
    ("y[t, 0] = identity('D')", "identity('D')", "expected a scalar or a row to store, got a state along D in base B; write y[…] = lse_of(…)"),
    ("m = identity('D')\nm = m + m", "m + m", "expected scalars or rows for '+', got a state along D in base B; merge(a, b) adds states"),
    ("m = identity('D')\nm += m", "m += m", "merge(a, b) adds states"),
    ("m = identity('D')\nm = m * 2.0", "m * 2.0", "expected scalars or rows for '*', got a state along D in base B; payload(s) is the row"),
    ("m = identity('D')\nm = -m", "-m", "expected scalars or rows for '-', got a state along D in base B; payload(s) is the row of a state, lse_of(s) its lse"),
    ("m = identity('D')\nm = max(m, m)", "max(m, m)", "expected scalars or rows for 'max', got a state"),
    ("m = identity('D')\nq[t] = i32(m < m)", "m < m", "expected scalars or rows to compare, got a state along D in base B; payload(s) is"),
    ("y[t] = exp(identity('D'))", "identity('D')", "expected f32 or a row of f32 for exp(…), got a state along D in base B; payload(s) is"),
    ("y[t, 0] = sum(identity('D'))", "identity('D')", "expected a row to reduce, got a state along D in base B; payload(s) is"),
    # hints about lists and arrays from outside the kernel
    ("q[t] = LIST[t]", "t", "expected a constant index from -2 to 1, got index; a value indexes tensors alone: pass the list as a tensor"),
    ("s = [1, 2]\nq[t] = s[q[t]]", "q[t]", "expected a constant index from -2 to 1, got i32; a value indexes tensors alone: pass the list as a tensor"),
    ("y[t] = x[t] * ARRAY", "ARRAY", "got an array of type numpy.ndarray; a kernel reads arrays that are its arguments: pass it as one, declared with In"),
    # hints about functions and operators
    ("q[t] = +q[t]", "+q[t]", "expected - or not before a value, got '+q[t]'; leave out the +"),
    ("y[t] = scale(x[t])", "scale", "got the kernel 'scale'; kernels share functions that are marked @mlafix.inline"),
    ("y[t, 0] = 1.0 if any(x[t]) else 0.0", "x[t]", "expected a row of bool to reduce, got a row of f32 along D; compare it, as in any(row > 0)"),
    ("q[t] = max(x[t] > 0.0)", "x[t] > 0.0", "got a row of bool along D; write any(…)"),
    ("q[t] = min(x[t] > 0.0)", "x[t] > 0.0", "got a row of bool along D; write all(…)"),
    ("y[t, 0] = x[t] @ x[t]", "x[t] @ x[t]", "got 'x[t] @ x[t]'; a kernel has no products of matrices, and sum(x[t] * x[t]) is one of two rows"),
    ("q[t] = sum(w[t])", "sum(w[t])", "expected i32 to store to 'q' (i32), got i64; i32(…) converts"),
    ("q[t] = argmax(w[t])", "w[t]", "got a row of i64 along D; write argmax(i32(…)), or argmax(f32(…))"),
    ("q[t] = sum(x[t] > 0.0)", "x[t] > 0.0", "got a row of bool along D; write sum(where(…, 1, 0))"),
    ("y[t] = cumsum(w[t])", "w[t]", "expected a row of f32 or i32 to scan, got a row of i64 along D; write cumsum(i32(…))"),
    ("q[t] = len(x[t])", "x[t]", """declared with List, or a tuple, got a row of f32 along D; write shape("D")"""),
    ("q[t] = len(five[t])", "five[t]", "got a row of f32 along 5; it has 5 elements"),
    ("q[t] = len(x)", "x", "got the tensor 'x'; write x.shape[0]"),
    # hints about operators with a higher precedence than they seem to have
    ("y[t] = where(x[t] > 0.0 & x[t] < 2.0, x[t], 0.0)", "0.0", "expected integers or bools for &, got 0.0; & binds more closely than a comparison: write (a < b) & (c < d)"),
    ("q[t] = i32(l[t] | q[t])", "l[t]", "expected integers or bools for |, got f32"),
    # hints about rows where one number is expected
    ("if x[t] > 0.0:\n    y[t] = x[t]", "x[t] > 0.0", "got a row of bool along D; where(c, a, b) chooses for each element, any(c) and all(c) are bools of a row"),
    ("y[t] = x[t] if x[t] > 0.0 else 0.0", "x[t] > 0.0", "; where(c, a, b) chooses for each element"),
    ("v = exp(x[t])\ny[t, 0] = v[:3]", "v[:3]", "; load the part that is needed, as x[t, :3], and compute on it, or take a few elements: row_of([v[i] for i in range(3)])"),
    ("y[t] = x[t, -1]", "-1", 'expected an index of at least 0, got -1; the last is shape("D") - 1'),
    ("y[t, 0] = five[t, -1]", "-1", "expected an index of at least 0 and below 5, got -1; the last is 4"),
    # hints about Triton's functions
    ("i = tl.program_id(0)", "tl.program_id", '; the grid gives the row its indices: for t in grid("n")'),
    ("i = program_id(0)", "program_id", '; the grid gives the row its indices: for t in grid("n")'),
    ("v = zeros(4)", "zeros", '; write 0.0, which is broadcast along a row; an empty state is identity("D")'),
    ("for i in static_range(4):\n    pass", "static_range", "; write for i in range(…)"),
    ("atomic_add(y[t, 0], 1.0)", "atomic_add", "; no two rows write one element: let the row that owns it loop over what is added"),
    ("y[t] = sigmoid(x[t])", "sigmoid", "; write 1.0 / (1.0 + exp(-x))"),
    ("y[t] = softmax(x[t])", "softmax", "; write e = exp(x - max(x)), then e / sum(e)"),
    ("q[t] = cdiv(q[t], 2)", "cdiv", "; write (a + b - 1) // b"),
    ("y[t] = tl.load(x)", "tl.load", "got 'tl.load'; names with values here: d, five, h, l, q, t, w, x, y; mlafix.dsl has load"),
    ("y[t] = clamp(x[t], 0, 1)", "clamp", "; write min(max(x, low), high)"),
    ("y[t] = cat(x[t], x[t])", "cat", "; a part of a row is stored where it belongs"),
    ("y[t] = load(x[t], mask=t < 2)", "t < 2", "got an argument 'mask'; mlafix calls it where"),
    ("y[t, 0] = sum(x[t], axis=0)", "sum(x[t], axis=0)", "got an argument 'axis'; a row has one dim: sum(row) takes all of it"),
    ("q[t] = num_warps", "num_warps", "; the compiler chooses blocks, warps and the grid"),
    # hints about misspelt names
    ("y[t] = exq(x[t])", "exq", "; did you mean exp?"),
    ("y[t] = x[i]", "i", "names with values here: d, five, h, l, q, t, w, x, y"),
    ("q[t] = i32(shape('d'))", "'d'", """got 'd'; did you mean "D"?"""),
    ("m = identity(D)", "D", """; "D" is a dim: write "D", as in identity("D")"""),
    # hints about tensors or values where other ones are expected
    ("y[t, 0] = max(x)", "x", "expected a row to reduce, got the tensor 'x'; a row of it is x[t]"),
    ("y[t] = x(t)", "x", "expected a function before ( ), got the tensor 'x'; a row of it is x[t]"),
    ("q[t] = i32(x.D)", "x.D", 'got .D; write shape("D")'),
    ("q[t] = i32(x[t].shape)", "x[t].shape", '; write shape("D")'),
    ("q[t] = i32(x.shape[t])", "t", '; which dim it is must be known: x.shape[0] or shape("n")'),
    ("y[t] = x[t, 0.5]", "0.5", "expected an integer as an index, got 0.5"),
    ("y[t] = x[t, x[t]]", "x[t]", "; x[t, i] is one element: a loop over i takes several"),
    ("y[t] = x[t] > 0.0", "x[t] > 0.0", "; f32(…) makes 1 of true and 0 of false"),
    ("y[t] = where(x[t], 1.0, 0.0)", "x[t]", "; compare it, as in x > 0"),
    ("y[t] = x[t] << 1", "x[t] << 1", "expected integers for << and >>, got a row of f32 along D"),
    ("y[t] = ~x[t]", "~x[t]", "; compare it with something"),
    ("y[t] = where(~(x[t] > 0.0), 1.0, 0.0)", "~(x[t] > 0.0)", "; write not …"),
    ("print(x)", "x", "; print a row, x[t], or an element, x[t, 0]"),
    # hints about statements
    ("for r in x:\n    pass", "x", "; write for i in range(x.shape[0]), and x[i]"),
    ("for i in range(8, 0, -1):\n    pass", "-1", "; count up, and compute what counts down"),
    ("raise ValueError", "raise ValueError", "; a kernel has no exceptions"),
    ("y[t] = twice(x[t], t)", "return v", "; an inline function returns once, at its end"),
    ("return x[t]", "return x[t]", "; a kernel returns nothing: store the result to an argument that is declared with Out"),
    ("while t < 3:\n    pass", "while", "got 'while'; a loop is 'for … in range(…)', whose bounds may be values"),
    ("def f(): pass", "def f", "got 'def'; define it outside of the kernel, a function with @mlafix.inline"),
    ("double = lambda v: v + v", "lambda v: v + v", "got a lambda; a function of its own, marked @mlafix.inline, may be called"),
]  # fmt: skip


def error_of(folder: Path, text: str) -> mlafix.CompileError:
    with pytest.raises(mlafix.CompileError) as caught:
        _ = load(folder, text).k.source
    return caught.value


@pytest.mark.parametrize(("body", "place", "message"), BODIES, ids=[body for body, _, _ in BODIES])
def test_body(tmp_path: Path, body: str, place: str, message: str) -> None:
    error = error_of(tmp_path, f"""
LIST, ARRAY = [1, 2], numpy.ones(4)

@mlafix.inline
def twice(v, t):
    if t > 1:
        return v
    return v + v

@kernel
def scale(x: InOut[f32, "n"]):
    for t in grid("n"):
        x[t] = 2.0 * x[t]

@kernel
def k(y: Out[f32, "n D"], q: InOut[i32, "n"], x: In[f32, "n D"], l: In[f32, "n"], h: In[f16, "n"], d: In[T, "n"], w: In[i64, "n D"],
      five: In[f32, "n five=5"]):
    for t in grid("n"):
{textwrap.indent(body, " " * 8)}
""")
    assert message in error.message
    assert underlined(error.message).replace("2**31", "2 ** 31") == place


def test_what_is_written_of_triton_around_a_kernel(tmp_path: Path) -> None:
    module = load(tmp_path, """
@kernel
def k(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t]
""")
    x = np.ones((2, 8), np.float32)
    y = np.full_like(x, 7)
    for call, message in (
        (lambda: module.k[(4,)](y, x), 'kernel "k": expected k(…), got k[(4,)]; the kernel says its grid itself: for t in grid("n")'),
        (lambda: module.k(x), 'kernel "k": expected an argument "x", got none; the call is k(y, x), outputs included'),
        (lambda: module.k(y, x, num_warps=4), 'expected one of y, x, got an argument "num_warps"; the compiler chooses blocks, warps and the grid'),
        (lambda: module.k(y, x, BLOCK_D=128), 'got an argument "BLOCK_D"; the compiler chooses blocks, warps and the grid'),
        (lambda: module.k(y, x, D=8), 'got an argument "D"; k.specialize(D=…) binds it'),
        (lambda: mlafix.kernel(num_warps=4), "@kernel: expected bounds, allow or plan, got num_warps=4; the compiler chooses blocks, warps and the grid"),
        (lambda: mlafix.kernel(inline=True), "@kernel: expected bounds, allow or plan, got inline=True"),
        (lambda: mlafix.kernel(plan="rows_ahead=0"), "@kernel: expected plan to be a dict such as {\"rows_ahead\": 0}, got 'rows_ahead=0'"),
        (lambda: mlafix.kernel(plan={"lanes": 0.5}), "@kernel: expected plan to have an integer, bool or word for each field's name, got 'lanes': 0.5"),
    ):
        with pytest.raises(mlafix.ArgumentError) as caught:
            call()
        assert message in str(caught.value)
    assert (y == 7).all()


def test_indices_of_the_grid_in_another_order(tmp_path: Path) -> None:
    text = """
@kernel
def k(y: Out[f32, "n H D"], x: In[f32, "n H D"]):
    for h, t in grid("n", "H"):
        y[{0}] = x[{0}]
"""
    error = error_of(tmp_path, text.format("t, h"))
    assert underlined(error.message) == "y[t, h]"
    assert """expected y[h, t], by the dims of 'y', got y[t, h]; the grid has t along "H" and h along "n\"""" in error.message
    assert load(tmp_path, text.format("h, t")).k.source


def test_a_factor_of_a_product_as_an_extent(tmp_path: Path) -> None:
    error = error_of(tmp_path, """
@kernel
def k(y: Out[f32, "(G K)"], x: In[f32, "(G K)"]):
    for g in grid("G"):
        y[g] = x[g]
""")
    assert """; "G" is a factor of the product "(G K)" of 'y': declare "G K" and pass a view with both dims""" in error.message


def test_what_the_messages_offer_works(tmp_path: Path) -> None:
    kernel = load(tmp_path, """
@kernel
def k(y: Out[i32, "n six=6"], x: In[f32, "n D"], w: In[i64, "n D"]):
    for t in grid("n"):
        positive = x[t] > 0.0
        y[t, 0] = i32(max(where(positive, 1, 0)) > 0)
        y[t, 1] = i32(min(where(positive, 1, 0)) > 0)
        y[t, 2] = sum(where(positive, 1, 0))
        y[t, 3] = sum(i32(w[t]))
        y[t, 4] = i32(sum(f32(w[t])))
        y[t, 5] = i32(sum(x[t] * x[t]))
""").k
    y = np.zeros((3, 6), np.int32)
    kernel(y, np.float32([[1, -1, 2], [1, 1, 1], [-1, -1, 0]]), np.arange(9).reshape(3, 3))
    assert y.tolist() == [[1, 0, 2, 3, 3, 6], [1, 1, 3, 12, 12, 3], [0, 0, 0, 21, 21, 2]]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ('x: In[f32, "B D"], l: In[f32, "B"]', "dim"),
        ('x: In[f32, "n (B K)"], l: In[f32, "n"]', "dim"),
        ('x: In[DType("B"), "n D"], l: In[f32, "n"]', "dtype"),
        ('x: In[f32, "n D"], l: In[f32, "n"], B: In[f32, "n"] | None', "argument"),
    ],
)
def test_a_name_beside_states_that_is_their_base(tmp_path: Path, arguments: str, kind: str) -> None:
    error = error_of(tmp_path, f"""
@kernel
def k({arguments}, y: Out[f32, "n"]):
    for t in grid(l.shape[0]):
        y[t] = lse_of(load_state(x[t], l[t]))
""")
    assert f"expected another name for {kind} 'B', which is the base of a state's lse here: rename it" in error.message
    assert error.line == 10


def test_the_name_of_the_base_is_free_without_it(tmp_path: Path) -> None:
    module = load(tmp_path, """
@kernel
def k(y: Out[f32, "B"], x: In[f32, "B D"], l: In[f32, "B"]):
    for t in grid("B"):
        y[t] = lse_of(load_state(x[t], l[t], base=2))
""")
    y = np.zeros(2, np.float32)
    module.k(y, np.ones((2, 4), np.float32), np.float32([1, 2]))
    assert y.tolist() == [1, 2]


def test_arguments_whose_names_calls_have_too(tmp_path: Path) -> None:
    text = """
@kernel
def k(y: Out[f32, "n"], NAME: In[f32, "n"]):
    for t in grid("n"):
        y[t] = NAME[t]
"""
    error = error_of(tmp_path, text.replace("NAME", "stream"))
    assert "'stream' is reserved for the launch stream: rename this argument" in error.message
    kernel = load(tmp_path, text.replace("NAME", "self")).k
    y, x = np.zeros(2, np.float32), np.float32([1, 2])
    kernel(y=y, self=x)
    assert (y == x).all() and kernel.debug(y=y, self=x).faults == ()
    y[:] = 0
    kernel.bind(y=y, self=x)()
    assert (y == x).all()
    optional = load(tmp_path, text.replace('NAME: In[f32, "n"]', 'self: In[f32, "n"] | None').replace("NAME", "self")).k
    optional.specialize(self="absent")(y)
    assert not y.any() and optional.debug(y).faults == ()


def test_a_product_that_no_argument_determines(tmp_path: Path) -> None:
    module = load(tmp_path, """
@kernel
def k(y: Out[f32, "n"], x: In[f32, "n (G K)"]):
    for t in grid("n"):
        y[t] = max(sum(x[t], along="K"))
""")
    y, x = np.zeros(2, np.float32), np.ones((2, 8), np.float32)
    with pytest.raises(mlafix.CompileError, match=r"note: no argument determines it: kernel.specialize\([GK]=…\) binds it"):
        module.k(y, x)
    module.k.specialize(G=2)(y, x)
    assert y.tolist() == [4, 4]


ONES = """
mlafix.kernel @NAME(%y: memref<?xf32, strided<[?], offset: ?>> {mlafix.access = "write", mlafix.dims = ["n"]}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32, strided<[?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %one = arith.constant 1.0 : f32
    mlafix.store %one, %y[%t] : f32, memref<?xf32, strided<[?], offset: ?>>
  }
}
"""


def test_a_file_of_two_kernels(tmp_path: Path) -> None:
    path = tmp_path / "both.mlir"
    path.write_text(ONES.replace("NAME", "one") + ONES.replace("NAME", "two"))
    with pytest.raises(mlafix.CompileError, match=r'expected a file with one kernel, got 2 \(name="…" chooses one, .*both.mlir:NAME'):
        mlafix.Kernel.load(path)
    assert mlafix.Kernel.load(path, name="two").name == "two"
