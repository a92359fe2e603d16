"""An omitted tensor reads as zeros where the predicate holds, whatever otherwise= says.

Once: otherwise= there, too."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('y', 'f32', ['n'], 'Out'),
            Tensor('z', 'f32', ['n', 'D'], 'Out'),
            Tensor('c', 'bool', ['n'], 'In'),
            Tensor('x', 'f32', ['n'], 'In', True),
            Tensor('w', 'f32', ['n', 'D'], 'In', True),
        ],
        [],
        Grid(['t'], ['n']),
        [
            Store(
                'y',
                [name('t', INDEX)],
                Node(
                    'load',
                    F32,
                    [
                        name('t', INDEX),
                        Node('compare', BOOL, [lit(0, INDEX), name('t', INDEX), lit(99, INDEX)], {'ops': ['le', 'lt']}),
                        lit(0.5, F32),
                    ],
                    {'other': True, 'tensor': 'x', 'where': True},
                ),
            ),
            Store(
                'z',
                [name('t', INDEX)],
                Node(
                    'ifexp',
                    Type('row', 'f32', 'D'),
                    [
                        Node('load', BOOL, [name('t', INDEX)], {'tensor': 'c'}),
                        Node('load', Type('row', 'f32', 'D'), [name('t', INDEX)], {'tensor': 'w'}),
                        lit(5.0, F32),
                    ],
                ),
            ),
        ],
    ),
    [Call({'D': 5, 'n': 3}, ['x', 'w'], seed=1)],
)
