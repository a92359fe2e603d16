"""Extent of i32.

Once: error: expected a grid around this, got the top of the kernel"""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [Tensor('x2', 'f32', ['n', 'H', 'm', 'E'], 'In')],
        [Scalar('count_t', 'i32', 'n')],
        Grid(['t', 'h'], [('scalar', 'count_t'), 'H']),
        [],
    ),
    [Call({'E': 1, 'H': 1, '_': 3, 'm': 1, 'n': 1}, scalars={'count_t': 1}, seed=2774171618, kinds={'x2': 'one'})],
)
