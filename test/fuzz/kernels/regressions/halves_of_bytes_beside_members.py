"""A row whose elements share bytes, beside a member of groups of f32, which fill an access each.

Once: packs of one element, of which no bytes can be made (GPUs only)."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('x11', 'f4e2m1', ['H', 'n', '(G 4)'], 'In'),
            Tensor('y15', 'f8e8m0', ['H', 'n', 'c', 'w=4'], 'Out'),
            Tensor('z17', 'f32', ['n', 'H', 'c', 'G'], 'InOut'),
            Tensor('x18', 'f32', ['H', 'n', 'c', '(G 4)'], 'In'),
        ],
        [],
        Grid(['t', 'h', 'j'], ['n', 'H', 'c']),
        [
            Assign(
                ['v8'],
                [
                    Node(
                        'make_state',
                        Type('state', dim='w', base='B'),
                        [
                            Node(
                                'load',
                                Type('row', 'f32', 'w'),
                                [lit(0, INDEX), lit(0, INDEX), lit(0, INDEX)],
                                {'part': 'group', 'tensor': 'x11'},
                            ),
                            lit(2.0, F32),
                        ],
                    ),
                ],
            ),
            StoreState(
                name('v8', Type('state', dim='w', base='B')),
                'y15',
                [name('h', INDEX), name('t', INDEX), name('j', INDEX)],
                '',
                [],
            ),
            Store(
                'z17',
                [name('t', INDEX), name('h', INDEX), name('j', INDEX)],
                Node(
                    'load',
                    Type('row', 'f32', 'G'),
                    [lit(0, INDEX), lit(0, INDEX), lit(0, INDEX), lit(3, INDEX)],
                    {'part': 'member', 'tensor': 'x18'},
                ),
            ),
        ],
        bases={'B': 'e'},
    ),
    [
        Call(
            {'G': 1, 'H': 1, '_': 2, 'c': 1, 'n': 1},
            seed=3974937148,
            kinds={'x11': 'one', 'x18': 'one', 'y15': 'one', 'z17': 'one'},
        ),
    ],
)
