"""Tests the operators that mlafix registers with torch: schemas, fake implementations, torch.compile, and the calls
that torch sees."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import contract  # noqa: E402
import mlafix  # noqa: E402
from calls import CALLS, FUNCTION_OF, Right, arrays  # noqa: E402
from devices import TorchDevice, has_cuda  # noqa: E402
from mlafix import ops
from mlafix._launcher import torch_state  # noqa: E402
from mlafix.compat import flash_attn, flashinfer, sglang, vllm  # noqa: E402
from mlafix.ops.formats import FORMATS  # noqa: E402
from numerics import BF16, same_bits  # noqa: E402
from states import make_states  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from watching import export, seen_by_torch  # noqa: E402

N, H, D = 6, 4, 64
KERNELS = sorted(CALLS)
OPERATORS = ops._operators.OPERATORS
DEVICES = [TorchDevice("cpu"), *([TorchDevice("cuda")] if has_cuda() else [])]


@pytest.fixture(params=DEVICES, ids=lambda device: device.name)
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param.where)


class Calls(TorchDispatchMode):
    """A mode that records the calls of this package's operators without running them."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Any, tuple[Any, ...]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace != "mlafix":
            return func(*args, **(kwargs or {}))
        self.seen.append((func, args))
        made = tuple(torch.empty(0) for _ in func._schema.returns)
        return made[0] if len(made) == 1 else made or None


def call_of(kernel: str, where: str) -> tuple[Any, tuple[Any, ...]]:
    """Returns the operator of a kernel's function, and the arguments that the function passes to the operator to launch
    this kernel."""
    with Calls() as calls:
        Right(TorchDevice(where)).call(kernel)
    ((operator, arguments),) = calls.seen
    assert operator in OPERATORS[FUNCTION_OF[kernel]].overloads.values()
    return operator, arguments


def test_schemas_are_made_of_the_signature() -> None:
    """A function has one operator for each choice of optional outputs. The operator writes the outputs that are passed
    to it, and returns the others."""
    common = ("str? out_format, {}Tensor? out_format_scale, Scalar? out_format_scale_number, "
              "bool out_format_power_of_two, str out_format_rounding, str? out_format_tiles, SymInt out_format_first_row, "
              "bool out_format_clear_padding, str out_format_quantize_from, Tensor? rope_positions, Tensor? rope_table, bool rope_interleaved, bool rope_inverse, "
              "SymInt? rope_start)")  # fmt: skip
    listed = OPERATORS["merge_states_list"]
    schemas = {name: listed.schema(chosen) for name, chosen in listed.chosen().items()}
    assert set(schemas) == {"", "out", "out_lse", "out_format_scales", "out_out_lse", "out_out_format_scales", "out_lse_out_format_scales",
                            "out_out_lse_out_format_scales"}  # fmt: skip
    assert schemas[""] == ("merge_states_list(Tensor[] vs, Tensor[] ss, bool return_lse, str lse_layout, str base, " + common.format("") +
                           " -> (Tensor, Tensor)")  # fmt: skip
    assert schemas["out_out_format_scales"] == (
        "merge_states_list.out_out_format_scales(Tensor[] vs, Tensor[] ss, Tensor(a!) out, bool return_lse, str lse_layout, str base, " +
        common.format("Tensor(b!) out_format_scales, ") + " -> (Tensor)")  # fmt: skip
    fill = OPERATORS["fill_pad_rows"]
    assert [fill.schema(chosen) for chosen in fill.chosen().values()] == [
        "fill_pad_rows(Tensor(a!) out, Tensor? live_rows, SymInt? live_rows_number, str lse_layout) -> ()",
        "fill_pad_rows.lse(Tensor(a!) out, Tensor? live_rows, SymInt? live_rows_number, Tensor(b!) lse, str lse_layout) -> ()"]


def test_every_function_is_an_operator() -> None:
    """Every function is an operator. The exceptions call another operator or work on the host."""
    assert set(ops.__all__) - set(OPERATORS) == {
        "Array", "Base", "Bases", "Bound", "LseLayout", "OutFormat", "Rope", "Stream", *FORMATS, "chunks_with_zero_kv", "is_prefilling", "offences"}  # fmt: skip
    mlafix.register_torch_operators()  # torch may have been imported later than mlafix
    assert all(hasattr(torch.ops.mlafix, name) for name in OPERATORS)


@pytest.mark.parametrize("kernel", KERNELS)
def test_opcheck(kernel: str, where: str) -> None:
    operator, args = call_of(kernel, where)
    checks = ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
    if any(getattr(a, "dtype", None) == torch.float8_e4m3fn for a in args):
        checks.remove("test_schema")  # It compares with allclose, which torch does not implement for fp8; the next test covers this.
    torch.library.opcheck(operator, args, test_utils=checks)


@pytest.mark.parametrize("kernel", KERNELS)
def test_operator_writes_what_its_schema_says(kernel: str, where: str) -> None:
    """An operator changes at least one argument that its schema declares as written, and no other. opcheck cannot see
    whether a declared write happens."""
    operator, args = call_of(kernel, where)
    given = [(declared, one) for declared, a in zip(operator._schema.arguments, args) for one in (a if isinstance(a, list) else [a])
             if isinstance(one, torch.Tensor)]  # fmt: skip
    before = [one.clone() for _, one in given]
    operator(*args)
    changed = {declared.name: bool(declared.is_write) for (declared, one), b in zip(given, before)
               if not torch.equal(one.view(torch.uint8), b.view(torch.uint8))}  # fmt: skip
    assert changed and all(changed.values()), changed


def layer(prefix: Any, prefix_lse: Any, suffix: Any, suffix_lse: Any, live: Any) -> tuple[Any, Any]:
    """Works like an engine's layer: allocates outputs, merges, pads, and merges many states."""
    out, lse = ops.merge_attn_states(prefix * 1, prefix_lse, suffix, suffix_lse, context_rows=4)
    ops.fill_pad_rows(out, live, lse)
    both, both_lse = ops.merge_states_list([out, suffix], [lse, suffix_lse], lse_layout="hn", base="e")
    ops.fixup_zero_kv_rows(both, both_lse, live - 1, torch.cat([live - live, live]))
    return both + 1, both_lse


def inputs(where: str) -> tuple[Any, ...]:
    torch.manual_seed(0)
    rows = [torch.randn(N, H, D, device=where, dtype=torch.bfloat16) for _ in range(2)]
    lses = [torch.randn(H, N, device=where) for _ in range(2)]
    return rows[0], lses[0], rows[1], lses[1], torch.tensor([5], dtype=torch.int32, device=where)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_fullgraph_gives_the_same_bits(dynamic: bool, where: str) -> None:
    """test_torch_ways.py compiles every function with inductor."""
    args = inputs(where)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for got, want in zip(compiled(*args), layer(*args)):
        assert torch.equal(got, want)


@pytest.mark.filterwarnings("default")
@pytest.mark.skipif(not has_cuda(), reason="needs a GPU: torch.compile captures CUDA graphs")
def test_compile_with_cuda_graphs() -> None:
    """A compiled function is captured in a CUDA graph (mode="reduce-overhead") and replayed with other inputs."""
    args = inputs("cuda")
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, mode="reduce-overhead")
    for shift in range(4):
        changed = (args[0] + shift, *args[1:])
        for got, want in zip(compiled(*changed), layer(*changed)):
            assert torch.equal(got, want)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_call_compiles(kernel: str, where: str) -> None:
    """A function compiles with the arguments of each kernel, in one graph. It writes and returns the bits of a plain
    call."""
    device, function = TorchDevice(where), getattr(ops, FUNCTION_OF[kernel])
    eager, traced = (Right(device).arguments(kernel) for _ in range(2))
    torch._dynamo.reset()
    compiled = torch.compile(lambda given: function(**given), fullgraph=True, backend="aot_eager")
    wanted, got = function(**eager), compiled(traced)
    leaves = torch.utils._pytree.tree_leaves
    for a, b in zip([*leaves(wanted), *arrays(eager)], [*leaves(got), *arrays(traced)], strict=True):
        if isinstance(a, torch.Tensor):
            assert same_bits(device.get(a), device.get(b))


def test_drop_ins_compile(where: str) -> None:
    def step(v: Any, s: Any, w: Any, t: Any, lens: Any, out: Any, out_lse: Any) -> tuple[Any, ...]:
        vllm.merge_attn_states(out, v, s.T, w, t.T, out_lse, 3)
        starts = torch.cat([lens - lens, lens]).cumsum(0)  # a cumsum is i64
        vllm.mask_empty_context(out_lse, out, starts, starts)
        a = sglang.merge_state_v2(v, s, w, t)
        b = flashinfer.merge_states(torch.stack([v, w], 1), torch.stack([s, t], 1))
        flashinfer.merge_state_in_place(*b, w, t, torch.arange(N, device=where) % 2 == 0)
        c = flash_attn.flash_attn_combine(torch.stack([v, w])[:, None], torch.stack([s, t])[:, None], out_dtype=torch.float32)
        return *a, *b, *c, out + 0, out_lse + 0

    v, w = (torch.randn(N, H, D, device=where, dtype=torch.bfloat16) for _ in range(2))
    s, t = (torch.randn(N, H, device=where) for _ in range(2))
    t[4] = float("inf")
    lens = torch.tensor([2, 0, 1], dtype=torch.int32, device=where)
    torch._dynamo.reset()
    outputs = [(torch.empty_like(v), torch.empty(H, N, device=where)) for _ in range(2)]
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")(v, s, w, t, lens, *outputs[0])
    for got, want in zip(compiled, step(v, s, w, t, lens, *outputs[1])):
        assert torch.equal(got, want)


def test_compile_in_place(where: str) -> None:
    """A compiled function updates its arguments in place: `prefix`, which the merge reads and writes, and a slice of
    `whole`."""
    def step(whole: Any, prefix: Any, suffix: Any, suffix_lse: Any) -> None:
        lse = whole[:, 1 : 1 + N]
        ops.merge_attn_states(prefix, lse, suffix, suffix_lse, out=prefix, out_lse=lse)

    prefix, _, suffix, suffix_lse, _ = inputs(where)
    whole = torch.randn(H, N + 2, device=where)
    eager = whole.clone(), prefix.clone()
    step(*eager, suffix, suffix_lse)
    torch._dynamo.reset()
    torch.compile(step, fullgraph=True, backend="aot_eager")(whole, prefix, suffix, suffix_lse)
    assert torch.equal(whole, eager[0]) and torch.equal(prefix, eager[1])


def test_symbolic_shapes_are_counts_of_the_host() -> None:
    """A symbolic size (make_fx) counts as a number, not as a tensor."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def step(out: Any, other: Any) -> Any:
        ops.fill_pad_rows(out, other.shape[0])
        return out + 0

    traced = make_fx(step, tracing_mode="symbolic")(torch.ones(8, H, D), torch.ones(5))
    assert "fill_pad_rows.default" in traced.code
    for live in (3, 7):
        got = traced(torch.ones(8, H, D), torch.ones(live))
        assert got[:live].eq(1).all() and got[live:].eq(0).all()


def test_inference_mode(where: str) -> None:
    with torch.inference_mode():
        args = inputs(where)
        eager = layer(*args)
        torch._dynamo.reset()
        for got, want in zip(torch.compile(layer, fullgraph=True, backend="aot_eager")(*args), eager):
            assert torch.equal(got, want)


def test_export(where: str) -> None:
    args = inputs(where)
    program = export(layer, args)
    names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert any("mlafix.merge_attn_states" in name for name in names)
    for got, want in zip(program.module()(*args), layer(*args)):
        assert torch.equal(got, want)


def test_torch_sees_calls_under_modes_and_on_subclasses() -> None:
    """Calls under a dispatch mode or a function mode, and on a subclass such as FakeTensor, go through torch. Plain
    calls do not."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    x = torch.randn(N, D)
    want = ops.softmax(x)
    with seen_by_torch() as seen:
        assert torch.equal(ops.softmax(x), want)
    assert "mlafix.softmax.default" in seen
    fake_mode = FakeTensorMode()
    fake = fake_mode.from_tensor(x)
    out = ops.softmax(fake)  # The mode is off here, so only the tensor's type shows that it is fake.
    assert type(out) is type(fake) and out.shape == x.shape
    with fake_mode:
        assert ops.merge_states(torch.empty(5, 3, H, D), torch.empty(5, 3, H))[0].shape == (5, H, D)
    with torch.device("cpu"):  # A default device does not affect the result, so the call need not go through torch.
        assert torch.equal(ops.softmax(x), want) and not torch_state.intercepted()


def test_parameters_and_gradients(where: str) -> None:
    """A Parameter is accepted as a plain tensor. Tensors that require gradients are refused, since no function of
    mlafix.ops is differentiable."""
    weight = torch.nn.Parameter(torch.ones(D, device=where), requires_grad=False)
    x = torch.randn(N, D, device=where)
    assert torch.equal(ops.rmsnorm(x, weight), ops.rmsnorm(x, weight.data))
    with pytest.raises(mlafix.ArgumentError, match='argument "x": expected .*grad'):
        ops.softmax(x.requires_grad_())


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # torch warns about its own code
def test_forward_mode_is_not_looked_for(where: str) -> None:
    """Tensors of forward mode are accepted: the primal is read, and the result has no tangent (docs/ops/README.md)."""
    from torch.autograd import forward_ad

    x = torch.randn(N, D, device=where)
    with forward_ad.dual_level():
        y = ops.softmax(forward_ad.make_dual(x, torch.ones_like(x)))
        assert forward_ad.unpack_dual(y).tangent is None and torch.equal(y, ops.softmax(x))


def test_numpy_alone_never_imports_torch() -> None:
    script = """
import numpy, sys
from mlafix import ops
ops.softmax(numpy.ones((2, 64), numpy.float32))
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_a_traced_call_takes_no_stream() -> None:
    x = torch.randn(N, D)
    with pytest.raises(Exception, match='argument "stream": expected None'):
        torch.compile(lambda a: ops.softmax(a, stream=7), fullgraph=True, backend="aot_eager")(x)


def test_the_reference_agrees_through_the_operator(rng: np.random.Generator) -> None:
    device = TorchDevice("cpu")
    states = make_states(rng, 2, N, H, D, BF16)
    v, s = device.put(states.v), device.put(states.s)
    out, lse = torch.empty_like(v[0]), torch.empty_like(s[0])
    with seen_by_torch() as seen:
        ops.merge_attn_states(v[0], s[0], v[1], s[1], out=out, out_lse=lse, lse_layout="nh")
    assert "mlafix.merge_attn_states.out_out_lse" in seen
    want, want_lse = contract.merge(states.v, states.s, out_dtype=BF16)
    want.check(device.get(out), "out")
    want_lse.check(device.get(lse), "lse")
    straight, _ = ops.merge_attn_states(v[0], s[0], v[1], s[1], lse_layout="nh")
    assert same_bits(device.get(straight), device.get(out))


