"""bf16 rows moved, or combined without arithmetic, under a condition.

Once: expected CPU code without undefined symbols, got '__truncsfbf2'."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('y', 'bf16', ['n', 'D'], 'Out'),
            Tensor('z', 'f32', ['n', 'D'], 'Out'),
            Tensor('w', 'bf16', ['n', 'D'], 'Out'),
            Tensor('x', 'bf16', ['n', 'D'], 'In'),
            Tensor('c', 'bool', ['n'], 'In'),
        ],
        [],
        Grid(['t'], ['n']),
        [
            Store(
                'y',
                [name('t', INDEX)],
                Node(
                    'load',
                    Type('row', 'f32', 'D'),
                    [name('t', INDEX), Node('load', BOOL, [name('t', INDEX)], {'tensor': 'c'})],
                    {'tensor': 'x', 'where': True},
                ),
            ),
            Store(
                'z',
                [name('t', INDEX)],
                Node(
                    'binary',
                    Type('row', 'f32', 'D'),
                    [
                        Node(
                            'load',
                            Type('row', 'f32', 'D'),
                            [name('t', INDEX), Node('load', BOOL, [name('t', INDEX)], {'tensor': 'c'})],
                            {'tensor': 'x', 'where': True},
                        ),
                        Node('load', Type('row', 'f32', 'D'), [name('t', INDEX)], {'tensor': 'x'}),
                    ],
                    {'name': 'copysign'},
                ),
            ),
            Store(
                'w',
                [name('t', INDEX)],
                Node(
                    'ifexp',
                    Type('row', 'f32', 'D'),
                    [
                        Node('load', BOOL, [name('t', INDEX)], {'tensor': 'c'}),
                        Node('load', Type('row', 'f32', 'D'), [name('t', INDEX)], {'tensor': 'x'}),
                        lit(0.0, F32),
                    ],
                ),
            ),
        ],
    ),
    [Call({'D': 5, 'n': 3}, seed=1, kinds={'x': 'special'})],
)
