"""A dtype variable with a default that only an omitted tensor has.

Once: expected 'defaults' to hold names of the kernel, got 'T'."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [Tensor('y', 'T', ['n', 'D'], 'Out', True), Tensor('z', 'f32', ['n'], 'Out'), Tensor('x', 'f32', ['D'], 'In')],
        [],
        Grid(['t'], ['n']),
        [
            StoreState(
                Node('identity', Type('state', dim='D', base='2')),
                'y',
                [name('t', INDEX)],
                'z',
                [name('t', INDEX)],
            ),
        ],
        variables={'T': 'bf16'},
    ),
    [Call({'D': 5, 'n': 3}, ['y'], {'T': 'f32'}, seed=1)],
)
