"""Prints every ```mlir example of the pages given as a separate module, for --split-input-file.

A whole kernel is printed as it is. An example of some ops is put into a kernel that defines the values that the ops
use. A type or an attribute becomes an attribute of a module.
"""

import pathlib
import re
import sys

AROUND = """
!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
mlafix.kernel @example(
    %out: !rows {{mlafix.dims = ["n", "H", "D"], mlafix.access = "write"}},
    %out_lse: !lses {{mlafix.dims = ["H", "n"], mlafix.access = "write", mlafix.optional}},
    %x: !rows {{mlafix.dims = ["n", "H", "D"], mlafix.access = "update"}},
    %lse: !lses {{mlafix.dims = ["H", "n"], mlafix.access = "update"}},
    %quantized: memref<?x?x?xf8E4M3FN, strided<[?, ?, 1], offset: ?>> {{mlafix.dims = ["n", "H", "D"], mlafix.access = "write"}},
    %halves: !rows {{mlafix.dims = ["n", "H", "(2 K)"], mlafix.access = "update"}},
    %pairs: !rows {{mlafix.dims = ["n", "H", "(K 2)"], mlafix.access = "update"}},
    %lens: memref<?xi32, strided<[1], offset: ?>> {{mlafix.dims = ["b"], mlafix.access = "read"}},
    %p: i1, %live: i1, %one: f32, %scale: f32, %logit: f32, %zero: i32, %i: index) {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %n) {{
{before}{example}
  }}
}}
"""
STATES = "".join(f'    %{name} = mlafix.identity : !mlafix.state<"D", e>\n' for name in "abcs")
STATES += '    %sink = mlafix.identity : !mlafix.state<"D", e, sink>\n'
ROWS = """    %row = mlafix.load %x[%t, %h] : !rows -> tensor<?xf32, #mlafix.dim<"D">>
    %zeros = mlafix.splat %logit : f32 -> tensor<?xf32, #mlafix.dim<"D">>
    %groups = mlafix.splat %one : f32 -> tensor<?xf32, #mlafix.dim<"G" x "K">>
    %scales = mlafix.splat %one : f32 -> tensor<?xf32, #mlafix.dim<"G">>
"""


def wrap(example):
    if "mlafix.kernel" in example:
        return example
    if re.match(r"[!#]|tensor", example):
        return "\n".join(f"module attributes {{test.example = {line}}} {{}}\n// -----" for line in example.splitlines())
    before = STATES
    if "= mlafix.load %x" in example:
        return AROUND.format(before=before, example=example)
    # The surrounding kernel must not define values that the example defines.
    defined = re.findall(r"^\s*%(\w+) =", example, re.M)
    before = "\n".join(line for line in (before + ROWS).splitlines() if line.split()[0][1:] not in defined) + "\n"
    return AROUND.format(before=before, example=example)


text = "\n".join(pathlib.Path(page).read_text(encoding="utf-8") for page in sys.argv[1:])
examples = re.findall(r"```mlir\n(.*?)```", text, re.S)
ops = set(re.findall(r"^### `(mlafix\w*\.\w+)`", text, re.M))
shown = set(re.findall(r"mlafix\w*\.\w+", "\n".join(examples)))
if ops - shown:
    sys.exit(f"expected an example of every op, got none of {sorted(ops - shown)}")
print(f"// {len(ops)} ops, {len(examples)} examples")
print("\n// -----\n".join(wrap(example.strip("\n")) for example in examples))
