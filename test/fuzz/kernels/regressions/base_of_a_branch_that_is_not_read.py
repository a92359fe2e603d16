"""Base of a branch that is not read: the instrument bound it.

Once: error: expected a name of kernel 'k' to bind ('D', 'n', 'x10'), got 'B'"""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('x10', 'u8', ['n'], 'In', True),
            Tensor('x11', 'u8', ['one=1'], 'In'),
            Tensor('x16', 'f32', ['D'], 'In'),
            Tensor('l17', 'f32', ['one=1'], 'In'),
            Tensor('x19', 'i32', ['n', 'two18=2'], 'In'),
        ],
        [],
        Grid(['t'], ['n']),
        [
            If(
                Node('unary', BOOL, [lit(False, BOOL)], {'name': 'not'}),
                [],
                [
                    If(
                        Node(
                            'compare',
                            BOOL,
                            [
                                Node('load', Type('scalar', 'u8'), [lit(0, INDEX)], {'tensor': 'x11'}),
                                Node('load', Type('scalar', 'u8'), [lit(0, INDEX)], {'tensor': 'x10'}),
                            ],
                            {'ops': ['eq']},
                        ),
                        [
                            Assign(
                                ['v18'],
                                [
                                    Node(
                                        'load_state',
                                        Type('state', dim='D', base='B'),
                                        [lit(0, INDEX)],
                                        {'lse': 'l17', 'split': 0, 'tensor': 'x16'},
                                    ),
                                ],
                            ),
                        ],
                        [],
                    ),
                ],
            ),
        ],
        bases={'B': 'e'},
    ),
    [
        Call(
            {'D': 1, '_': 3, 'n': 1},
            bases={'B': '2'},
            seed=1380848029,
            kinds={'l17': 'one', 'x10': 'zero', 'x11': 'zero', 'x16': 'one', 'x19': 'zero'},
        ),
    ],
)
