"""crash: exit status -#: (seed 930 on cpu)."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('x11', 'f32', ['n', '(G 16)'], 'In'),
            Tensor('x17', 'f32', ['K', 'n', '(G 16)'], 'In'),
            Tensor('x26', 'f32', ['n', 'G'], 'In'),
            Tensor('l27', 'f32', ['n'], 'In'),
            Tensor('z28', 'f8e4m3fn', ['n', 'G'], 'InOut'),
        ],
        [Scalar('a9', 'i32')],
        Grid(['t'], ['n']),
        [
            For(
                'r8',
                lit(0, I32),
                Node(
                    'binary',
                    I32,
                    [Node('binary', I32, [name('a9', I32), lit(-1, I32)], {'name': 'max'}), lit(6, I32)],
                    {'name': 'min'},
                ),
                1,
                [
                    Assign(
                        ['v20', 'v21'],
                        [
                            Node('load', Type('row', 'f32', '(G 16)'), [lit(0, INDEX)], {'tensor': 'x11'}),
                            Node(
                                'load',
                                Type('row', 'f32', '(G 16)'),
                                [lit(0, INDEX), lit(0, INDEX)],
                                {'tensor': 'x17'},
                            ),
                        ],
                    ),
                    For(
                        'r22',
                        lit(0, I32),
                        Node(
                            'binary',
                            I32,
                            [Node('binary', I32, [name('r8', I32), lit(-6, I32)], {'name': 'max'}), lit(6, I32)],
                            {'name': 'min'},
                        ),
                        1,
                        [
                            Assign(
                                ['v20'],
                                [
                                    Node(
                                        'load',
                                        Type('row', 'f32', 'G'),
                                        [lit(0, INDEX), lit(0, INDEX), lit(0, INDEX)],
                                        {'part': 'member', 'tensor': 'x17'},
                                    ),
                                ],
                                'sub',
                            ),
                            StoreState(
                                Node(
                                    'load_state',
                                    Type('state', dim='G', base='2'),
                                    [lit(0, INDEX), lit(0, INDEX)],
                                    {'lse': 'l27', 'split': 1, 'tensor': 'x26'},
                                ),
                                'z28',
                                [name('t', INDEX)],
                                '',
                                [],
                            ),
                        ],
                        1,
                    ),
                ],
                1,
            ),
        ],
    ),
    [
        Call(
            {'G': 1, 'K': 1, '_': 1, 'n': 1},
            scalars={'a9': 1},
            seed=2781030309,
            kinds={'l27': 'one', 'x11': 'one', 'x17': 'one', 'x26': 'one', 'z28': 'one'},
        ),
    ],
)
