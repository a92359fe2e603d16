"""Loops over rows whose range is empty by more than a step, and whose index would wrap.

Once: an empty range ran on GPUs; an index that wraps never ended."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('y', 'f32', ['n', 'D'], 'Out'),
            Tensor('z', 'f32', ['n', 'D'], 'Out'),
            Tensor('w', 'f32', ['n', 'D'], 'Out'),
            Tensor('x', 'f32', ['q=3', 'D'], 'In'),
            Tensor('n7', 'i32', ['n'], 'In'),
        ],
        [],
        Grid(['t'], ['n']),
        [
            Assign(['v'], [Node('splat', Type('row', 'f32', 'D'), [lit(0.0, F32)])]),
            For(
                'r',
                Node('load', I32, [name('t', INDEX)], {'tensor': 'n7'}),
                lit(0, I32),
                2,
                [
                    Assign(
                        ['v'],
                        [
                            Node(
                                'binary',
                                Type('row', 'f32', 'D'),
                                [
                                    Node(
                                        'load',
                                        Type('row', 'f32', 'D'),
                                        [
                                            Node(
                                                'binary',
                                                INDEX,
                                                [Node('convert', INDEX, [name('r', I32)]), lit(3, INDEX)],
                                                {'name': 'mod'},
                                            ),
                                        ],
                                        {'tensor': 'x'},
                                    ),
                                    lit(1.0, F32),
                                ],
                                {'name': 'add'},
                            ),
                        ],
                        'add',
                    ),
                ],
            ),
            Store('y', [name('t', INDEX)], name('v', Type('row', 'f32', 'D'))),
            Assign(['v'], [Node('splat', Type('row', 'f32', 'D'), [lit(0.0, F32)])]),
            For(
                'r',
                Node('binary', INDEX, [name('t', INDEX), lit(-2, INDEX)], {'name': 'max'}),
                lit(-5, INDEX),
                2,
                [
                    Assign(
                        ['v'],
                        [
                            Node(
                                'binary',
                                Type('row', 'f32', 'D'),
                                [
                                    Node(
                                        'load',
                                        Type('row', 'f32', 'D'),
                                        [
                                            Node(
                                                'binary',
                                                INDEX,
                                                [Node('convert', INDEX, [name('r', INDEX)]), lit(3, INDEX)],
                                                {'name': 'mod'},
                                            ),
                                        ],
                                        {'tensor': 'x'},
                                    ),
                                    lit(1.0, F32),
                                ],
                                {'name': 'add'},
                            ),
                        ],
                        'add',
                    ),
                ],
            ),
            Store('z', [name('t', INDEX)], name('v', Type('row', 'f32', 'D'))),
            Assign(['v'], [Node('splat', Type('row', 'f32', 'D'), [lit(0.0, F32)])]),
            For(
                'r',
                lit(2147483646, I32),
                lit(2147483647, I32),
                2,
                [
                    Assign(
                        ['v'],
                        [
                            Node(
                                'binary',
                                Type('row', 'f32', 'D'),
                                [
                                    Node(
                                        'load',
                                        Type('row', 'f32', 'D'),
                                        [
                                            Node(
                                                'binary',
                                                INDEX,
                                                [Node('convert', INDEX, [name('r', I32)]), lit(3, INDEX)],
                                                {'name': 'mod'},
                                            ),
                                        ],
                                        {'tensor': 'x'},
                                    ),
                                    lit(1.0, F32),
                                ],
                                {'name': 'add'},
                            ),
                        ],
                        'add',
                    ),
                ],
            ),
            Store('w', [name('t', INDEX)], name('v', Type('row', 'f32', 'D'))),
        ],
    ),
    [Call({'D': 5, 'n': 3}, seed=1, values={'n7': [7, 2, 4294967293]}, kinds={'x': 'whole'})],
)
