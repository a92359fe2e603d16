"""Shifts by the width, by more, and by negative amounts, of rows.

Once: poison, so that a store was dropped, or rows differed by batch."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('y', 'i32', ['n', 'D'], 'Out'),
            Tensor('z', 'i32', ['n', 'D'], 'Out'),
            Tensor('w', 'i32', ['n', 'D'], 'Out'),
            Tensor('x', 'i32', ['n', 'D'], 'In'),
            Tensor('by', 'i32', ['n', 'D'], 'In'),
        ],
        [],
        Grid(['t'], ['n']),
        [
            Store(
                'y',
                [name('t', INDEX)],
                Node(
                    'binary',
                    Type('row', 'i32', 'D'),
                    [Node('load', Type('row', 'i32', 'D'), [name('t', INDEX)], {'tensor': 'x'}), lit(41, I32)],
                    {'name': 'shl'},
                ),
            ),
            Store(
                'z',
                [name('t', INDEX)],
                Node(
                    'binary',
                    Type('row', 'i32', 'D'),
                    [Node('load', Type('row', 'i32', 'D'), [name('t', INDEX)], {'tensor': 'x'}), lit(-1, I32)],
                    {'name': 'shr'},
                ),
            ),
            Store(
                'w',
                [name('t', INDEX)],
                Node(
                    'binary',
                    Type('row', 'i32', 'D'),
                    [
                        Node('load', Type('row', 'i32', 'D'), [name('t', INDEX)], {'tensor': 'x'}),
                        Node('load', Type('row', 'i32', 'D'), [name('t', INDEX)], {'tensor': 'by'}),
                    ],
                    {'name': 'shl'},
                ),
            ),
        ],
    ),
    [Call({'D': 5, 'n': 3}, seed=1, kinds={'by': 'any', 'x': 'any'})],
)
