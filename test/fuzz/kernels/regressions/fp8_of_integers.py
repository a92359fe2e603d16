"""Integers and booleans to fp8.

Once: expected f8e4m3fn only where it is stored, got arithmetic on it by 'arith.sitofp'."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('y', 'f8e4m3fn', ['n'], 'Out'),
            Tensor('z', 'f8e4m3fn', ['n', 'D'], 'Out'),
            Tensor('b', 'f8e4m3fn', ['n'], 'Out'),
            Tensor('x', 'i32', ['n', 'D'], 'In'),
            Tensor('c', 'bool', ['n'], 'In'),
        ],
        [Scalar('a', 'index')],
        Grid(['t'], ['n']),
        [
            Store('y', [name('t', INDEX)], Node('convert', F32, [name('a', INDEX)])),
            Store(
                'z',
                [name('t', INDEX)],
                Node(
                    'convert',
                    Type('row', 'f32', 'D'),
                    [Node('load', Type('row', 'i32', 'D'), [name('t', INDEX)], {'tensor': 'x'})],
                ),
            ),
            Store(
                'b',
                [name('t', INDEX)],
                Node('convert', F32, [Node('load', BOOL, [name('t', INDEX)], {'tensor': 'c'})]),
            ),
        ],
    ),
    [Call({'D': 5, 'n': 3}, scalars={'a': -7}, seed=1, kinds={'x': 'any'})],
)
