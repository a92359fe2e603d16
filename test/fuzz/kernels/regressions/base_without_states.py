"""Base without states.

Once: error: 'mlafix.kernel' op expected 'defaults' to hold names of the kernel, got 'B'"""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('y6', 'i32', ['n'], 'InOut'),
            Tensor('x9', 'u8', ['D'], 'In'),
            Tensor('z10', 'f32', ['n', 'D'], 'InOut', True),
        ],
        [],
        Grid(['t'], ['n']),
        [StoreState(Node('identity', Type('state', dim='D', base='B')), 'z10', [name('t', INDEX)], '', [])],
        bases={'B': 'e'},
    ),
    [Call({'D': 1, '_': 2, 'n': 1}, ['z10'], seed=2952004644, kinds={'x9': 'zero', 'y6': 'zero', 'z10': 'one'})],
)
