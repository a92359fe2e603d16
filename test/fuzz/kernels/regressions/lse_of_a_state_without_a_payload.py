"""Lse of a state without a payload.

Once: error: expected a size for dim 'D' of kernel 'k', got no binding of it"""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('y3', 'f32', ['n', 'H', 'D'], 'Out', True),
            Tensor('l2', 'f32', ['n'], 'In'),
            Tensor('y4', 'f32', ['H', 'n'], 'Out'),
            Tensor('x1', 'f32', ['n', 'D'], 'In', True),
        ],
        [],
        Grid(['t', 'h'], ['n', 'H']),
        [
            StoreState(
                Node(
                    'load_state',
                    Type('state', dim='D', base='2'),
                    [lit(0, INDEX), lit(0, INDEX)],
                    {'lse': 'l2', 'split': 1, 'tensor': 'x1'},
                ),
                'y3',
                [name('t', INDEX), name('h', INDEX)],
                'y4',
                [name('h', INDEX), name('t', INDEX)],
            ),
        ],
    ),
    [
        Call(
            {'D': 1, 'H': 1, '_': 3, 'n': 1},
            ['y3', 'x1'],
            seed=324702447,
            kinds={'l2': 'one', 'x1': 'one', 'y3': 'one', 'y4': 'one'},
        ),
    ],
)
