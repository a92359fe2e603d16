"""States and rows along a dim of fixed size, by its name and from memory.

Once: expected states of one dim and base, got one along e and one along 20."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('y', 'f32', ['n', 'e=20'], 'Out'),
            Tensor('x', 'f32', ['n', 'e=20'], 'In'),
            Tensor('l', 'f32', ['n'], 'In'),
        ],
        [],
        Grid(['t'], ['n']),
        [
            StoreState(
                Node(
                    'merge',
                    Type('state', dim='e', base='2'),
                    [
                        Node('identity', Type('state', dim='e', base='2')),
                        Node(
                            'load_state',
                            Type('state', dim='e', base='2'),
                            [name('t', INDEX), name('t', INDEX)],
                            {'lse': 'l', 'split': 1, 'tensor': 'x'},
                        ),
                    ],
                ),
                'y',
                [name('t', INDEX)],
                '',
                [],
            ),
        ],
    ),
    [Call({'n': 4}, seed=3, kinds={'l': 'lse'})],
)
