"""Rows along a fixed dim.

Once: error: expected a row along e to store to 'z20', got a row of f32 along 8"""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [Tensor('x7', 'f32', ['e=8'], 'In'), Tensor('z20', 'f32', ['n', 'e=8'], 'InOut')],
        [],
        Grid(['t'], ['n']),
        [Store('z20', [name('t', INDEX)], Node('load', Type('row', 'f32', 'e'), attrs={'tensor': 'x7'}))],
    ),
    [Call({'_': 4, 'n': 1}, seed=1996412365, kinds={'x7': 'one', 'z20': 'one'})],
)
