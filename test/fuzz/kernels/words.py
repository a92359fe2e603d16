"""Finds the words of the language and the kinds of calls in a case, for the counts in a report."""

from __future__ import annotations

from syntax import COMPUTED, FP4, STORED, Assign, Assume, Case, Each, Exchange, For, If, Print, Store, StoreState, all_statements, bound_of, factors, is_bounded

from mlafix.dsl.functions import NAMES

# All words that a case may contain. A report lists the words that no case contained.
WORDS = (
    "grid segments segments-where segments-inline extent-scalar extent-number extent-computed at_most or_tensor held if else elif constant-if for for-step for-i32 for-i64 "
    "for-index for-nested each-tensors each-values assume assume-in-grid distinct print aug tuple-assign list list-comprehension list-element inline inline-default load load-where load-otherwise load-row load-colon "
    "load-widen load-own load-table store store-byte move store-where store-row store-splat store-state store-state-out store-state-lse store-state-where "
    "store-state-scale load_state load_state-where make_state sink sink-bare state-with-sink identity merge merge-many mask rebase base-e base-2 base-B base-BaseOfB state-choice add sub mul "
    "div floordiv mod shl shr and or xor min max copysign fma neg abs not bf16 f16 f8e4m3fn f8e5m2 f8e8m0 compare swizzle-128x4 swizzle-8x4 "
    "compare-chain logic-and logic-or ifexp where where-row reduce-add reduce-max reduce-min reduce-argmax reduce-argmin reduce-any reduce-all reduce-along top top-along scan-add scan-max scan-min scan-along swap load-into load-slice load-group load-member load-part store-group store-member store-part store-slice row_of element-of-row element-of-part element-of-groups payload lse_of broadcast product iota convert shape tensor.shape len ranks exchange turn present is-None splat "
    "optional absent alias stride-0 reversed padded transposed offset fixed-dim bounded-dim row-in-memory dtype-variable bound-dim dim-zero In Out InOut List Peers "
    + " ".join((*NAMES, *(f"dtype-{d}" for d in (*STORED, FP4))))
).split()


IN_REGISTERS = 65536  # in elements: longer rows, and rows along dims with larger bounds, are read from memory at each use


def words(case: Case) -> set[str]:
    found: set[str] = set()
    kernel = case.kernel
    found.add("segments" if kernel.grid.segments else "grid")
    if kernel.grid.where is not None:
        found.add("segments-inline" if kernel.grid.where_inline else "segments-where")
    for extent in kernel.grid.extents:
        found.add("extent-number" if isinstance(extent, int) else "extent-computed" if extent[0] in COMPUTED else "extent-scalar" if isinstance(extent, tuple) else "grid")
    found |= {"at_most" for scalar in kernel.scalars if scalar.at_most} | {"or_tensor" for scalar in kernel.scalars if scalar.from_tensor}
    found |= {"held" for call in case.calls if call.held}
    for tensor in kernel.tensors:
        found |= {"Peers" if tensor.of_ranks else "List" if tensor.listed else tensor.access, "optional" if tensor.optional else tensor.access}
        found |= {"dtype-variable" if tensor.dtype in kernel.variables else f"dtype-{tensor.dtype}"}
        found |= {f"swizzle-{tensor.tiles}x4"} if tensor.tiles else set()
        found |= {"fixed-dim" if not is_bounded(dim) else "bounded-dim" for dim in tensor.dims if "=" in dim}
        found |= {"product" for dim in tensor.dims if factors(dim)}
    found |= {"assume" if isinstance(promise, Assume) else "distinct" for promise in kernel.promises}
    found |= {"row-in-memory" for dim in {dim for tensor in kernel.tensors for dim in tensor.dims} if is_bounded(dim) and bound_of(dim) > IN_REGISTERS}
    _statements(kernel, found)
    for node in kernel.nodes():
        _node(node, kernel, found)
    for call in case.calls:
        _call(call, found)
    return found


def _statements(kernel, found: set[str]) -> None:
    bodies = [kernel.body, *(inline.body for inline in kernel.inlines)]
    found |= {"inline-default" for inline in kernel.inlines if inline.defaults}
    for s in (s for body in bodies for s in all_statements(body)):
        if isinstance(s, If):
            found |= {"if", *(["else"] if s.orelse else []), *(["constant-if"] if s.condition.op == "lit" else [])}
            if len(s.orelse) == 1 and isinstance(s.orelse[0], If):
                found.add("elif")
        elif isinstance(s, For):
            found |= {"for", f"for-{s.lower.type.dtype}", *(["for-step"] if s.step > 1 else [])}
            found |= {"for-nested" for inner in all_statements(s.body) if isinstance(inner, For)}
        elif isinstance(s, Each):
            found.add("each-tensors" if s.items and s.items[0][0].op == "tensor" else "each-values")
        elif isinstance(s, Assign):
            found |= {"aug"} if s.aug else {"tuple-assign"} if len(s.names) > 1 else set()
            found |= {"list-element"} if any("[" in name for name in s.names) else set()
        elif isinstance(s, (Assume, Print)):
            found.add("print" if isinstance(s, Print) else "assume-in-grid")
        elif isinstance(s, Exchange):
            found.add("exchange")
        elif isinstance(s, Store):
            is_row = len(s.indices) < len(kernel.tensor(s.tensor).dims) + bool(s.part)
            found |= {"store-part" if s.part == "element" else f"store-{s.part}"} if s.part else set()
            found |= {"store-slice"} if s.slice else set()
            found |= {"store", *(["store-where"] if s.where else []), *(["store-row"] if is_row else [])}
            found |= {"move"} if s.value.type.dtype == "M" else set()
            found |= {"store-byte"} if kernel.tensor(s.tensor).dtype in ("i8", "u8") and s.value.type.dtype not in ("i8", "u8") else set()
            if is_row and s.value.type.kind == "scalar":
                found.add("store-splat")
        elif isinstance(s, StoreState):
            found |= {"store-state", *(["store-state-where"] if s.where else []), *(["store-state-scale"] if s.scale else [])}
            found |= {"store-state-out"} if not s.lse else {"store-state-lse"} if not s.out else set()


def _node(node, kernel, found: set[str]) -> None:
    attrs = node.attrs
    if factors(node.type.dim) and node.op != "load" and any(n.type.dim == factors(node.type.dim)[0] for n in node.args):
        found.add("broadcast")
    if node.type.kind == "state":
        found.add(f"base-{node.type.base}")
        found |= {"state-choice"} if node.op in ("where", "ifexp") else set()
        found |= {"state-with-sink"} if node.type.sink and node.op != "sink" else set()
    if node.op in ("binary", "unary"):
        found.add(attrs["name"])
    elif node.op == "logic":
        found.add(f"logic-{attrs['name']}")
    elif node.op == "reduce":
        found.add(f"reduce-{attrs['kind']}")
        found |= {"reduce-along"} if "along" in attrs else set()
    elif node.op == "top":
        found |= {"top", *(["top-along"] if "along" in attrs else [])}
    elif node.op == "scan":
        found.add(f"scan-{attrs['kind']}")
        found |= {"scan-along"} if "along" in attrs else set()
    elif node.op == "compare":
        found |= {"compare", *(["compare-chain"] if len(attrs["ops"]) > 1 else [])}
    elif node.op == "present":
        found.add("present" if attrs["style"] == "present" else "is-None")
    elif node.op == "shape":
        tensor = kernel.tensor(attrs["tensor"]) if "tensor" in attrs else None
        found.add("shape" if tensor is None else "ranks" if tensor.of_ranks else "len" if tensor.listed else "tensor.shape")
    elif node.op == "call":
        found.add("inline")
    elif node.op in ("load", "load_state"):
        indices = node.access()[0]
        found |= {node.op, *([f"{node.op}-where"] if attrs.get("where") else []), *(["load-otherwise"] if attrs.get("other") else [])}
        found |= {"load-colon"} if attrs.get("colon") else set()
        found |= {"load-part" if attrs["part"] == "element" else f"load-{attrs['part']}"} if attrs.get("part") else set()
        found |= {"load-widen"} if attrs.get("widen") else set()
        found |= {"load-into"} if "into" in attrs else set()
        found |= {"load-slice"} if "slice" in attrs else set()
        found |= {"load-row"} if node.type.kind == "row" else set()
        found |= {"load-table"} if any(inner.op == "load" for index in indices for inner in index.walk()) else set()
        known = [tensor for tensor in kernel.tensors if tensor.name == attrs["tensor"]]
        found |= {"load-own"} if known and known[0].access != "In" else set()
    elif node.op == "merge":
        found |= {"merge", *(["merge-many"] if len(node.args) > 2 else [])}
    elif node.op == "list":
        found.add("list-comprehension" if "over" in attrs else "list")
    elif node.op == "sink":
        found.add("sink-bare" if "says" in attrs else "sink")
    elif node.op == "element":
        found.add("element-of-groups" if node.type.kind == "row" else "element-of-part" if len(node.args) > 2 else "element-of-row")
    elif node.op == "where":
        found.add("where-row" if node.args[0].type.kind == "row" else "where")
    elif node.op not in ("lit", "name", "tensor"):
        found.add(node.op)


def _call(call, found: set[str]) -> None:
    found |= {"absent"} if call.absent else set()
    found |= {"alias"} if call.aliases else set()
    found |= {"bound-dim"} if call.bound else set()
    found |= {"dim-zero"} if 0 in call.sizes.values() else set()
    found |= {f"dtype-{dtype}" for dtype in call.dtypes.values()}
    for layout in call.layouts.values():
        found |= {"stride-0"} if layout.broadcast else set()
        found |= {"reversed"} if layout.reverse else set()
        found |= {"padded"} if layout.gap or layout.last_stride > 1 else set()
        found |= {"transposed"} if layout.order != sorted(layout.order) else set()
        found |= {"offset"} if layout.offset else set()
