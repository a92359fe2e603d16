"""An index that loses bits on its way through i32.

Once: both casts folded away, and a clamped index read another element."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [Tensor('y', 'f32', ['n'], 'Out'), Tensor('x', 'f32', ['n', 'D'], 'In')],
        [Scalar('a', 'index')],
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
                        Node(
                            'binary',
                            INDEX,
                            [
                                Node(
                                    'binary',
                                    INDEX,
                                    [Node('convert', INDEX, [Node('convert', I32, [name('a', INDEX)])]), lit(4, INDEX)],
                                    {'name': 'min'},
                                ),
                                lit(0, INDEX),
                            ],
                            {'name': 'max'},
                        ),
                    ],
                    {'tensor': 'x'},
                ),
            ),
        ],
    ),
    [Call({'D': 5, 'n': 3}, scalars={'a': 3074457345618258602}, seed=1, kinds={'x': 'whole'})],
)
