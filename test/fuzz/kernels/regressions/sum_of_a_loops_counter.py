"""The sum of a loop's counter, in whose closed form LLVM divides 65 bits.

Once: expected CPU code without undefined symbols, got '__udivti3'."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('x16', 'f8e8m0', ['k', 'qt=3', '(G J)'], 'In'),
            Tensor('x32', 'f32', ['G'], 'In'),
            Tensor('y29', 'f8e8m0', ['qt=3', '(G J)'], 'Out'),
        ],
        [],
        Grid(['t'], [3]),
        [
            Assign(['v1'], [lit(0, INDEX)]),
            For(
                'r13',
                name('t', INDEX),
                lit(6, INDEX),
                7,
                [Assign(['v1'], [Node('binary', INDEX, [name('v1', INDEX), name('r13', INDEX)], {'name': 'add'})])],
            ),
            StoreState(
                Node(
                    'merge',
                    Type('state', dim='(G J)', base='e', sink=True),
                    [
                        Node(
                            'make_state',
                            Type('state', dim='(G J)', base='e'),
                            [
                                Node(
                                    'load',
                                    Type('row', 'f32', '(G J)'),
                                    [name('v1', INDEX), lit(0, INDEX)],
                                    {'tensor': 'x16'},
                                ),
                                lit(-2.909425973892212, F32),
                            ],
                        ),
                    ],
                ),
                'y29',
                [name('t', INDEX)],
                '',
                [],
            ),
        ],
    ),
    [Call({'G': 1, 'J': 1, '_': 2, 'k': 1}, seed=3512174110, kinds={'x16': 'one', 'x32': 'one', 'y29': 'one'})],
)
