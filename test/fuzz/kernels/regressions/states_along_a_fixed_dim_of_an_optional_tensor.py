"""States along a fixed dim of an optional tensor: the interpreter did not know its size.

Once: invalid: KeyError: 'e'"""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('x7', 'f32', ['two6=2', 'e=20'], 'In', True),
            Tensor('l8', 'f32', ['two6=2'], 'In'),
            Tensor('z12', 'f32', ['n', 'H', 'two11=2'], 'InOut'),
        ],
        [],
        Grid(['t', 'h'], ['n', 'H']),
        [
            StoreState(
                Node(
                    'load_state',
                    Type('state', dim='e', base='B'),
                    [lit(0, INDEX), lit(0, INDEX)],
                    {'lse': 'l8', 'split': 1, 'tensor': 'x7'},
                ),
                '',
                [],
                'z12',
                [name('t', INDEX), name('h', INDEX), lit(1, INDEX)],
            ),
        ],
        bases={'B': 'e'},
    ),
    [Call({'H': 1, '_': 2, 'n': 1}, seed=2052330305, kinds={'l8': 'one', 'x7': 'one', 'z12': 'one'})],
)
