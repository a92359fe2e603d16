"""f16 and bf16 to fp8 without arithmetic: numbers, rows, rows of a dtype variable.

Once: the lowered module cannot be written as LLVM IR."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('y', 'f8e4m3fn', ['n'], 'Out'),
            Tensor('z', 'f8e4m3fn', ['n', 'D'], 'Out'),
            Tensor('w', 'f8e4m3fn', ['n', 'D'], 'Out'),
            Tensor('x', 'f16', ['n', 'D'], 'In'),
            Tensor('u', 'T', ['n', 'D'], 'In'),
        ],
        [],
        Grid(['t'], ['n']),
        [
            Store('y', [name('t', INDEX)], Node('load', F32, [name('t', INDEX), lit(0, INDEX)], {'tensor': 'x'})),
            Store('z', [name('t', INDEX)], Node('load', Type('row', 'f32', 'D'), [name('t', INDEX)], {'tensor': 'x'})),
            Store('w', [name('t', INDEX)], Node('load', Type('row', 'f32', 'D'), [name('t', INDEX)], {'tensor': 'u'})),
        ],
        variables={'T': ''},
    ),
    [Call({'D': 5, 'n': 3}, dtypes={'T': 'bf16'}, seed=1, kinds={'u': 'special', 'x': 'special'})],
)
