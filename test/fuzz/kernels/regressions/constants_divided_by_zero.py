"""Constants divided by zero.

Once: error: expected a number, got ZeroDivisionError: float division by zero"""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [Tensor('x22', 'f32', ['n', 'E'], 'In'), Tensor('y21', 'f32', ['n', 'E'], 'Out')],
        [],
        Grid(['t'], ['n']),
        [
            Store(
                'y21',
                [name('t', INDEX)],
                Node(
                    'call',
                    Type('row', 'f32', 'E'),
                    [Node('load', Type('row', 'f32', 'E'), [lit(0, INDEX)], {'tensor': 'x22'})],
                    {'function': 'g1'},
                ),
            ),
        ],
        [
            Inline(
                'g1',
                ['p5', 'p6'],
                [Type('row', 'f32', 'E'), F32],
                [Assign(['v7'], [Node('binary', F32, [lit(0.0, F32), name('p6', F32)], {'name': 'div'})])],
                Node('splat', Type('row', 'f32', 'E'), [lit(1.0, F32)]),
                [lit(0.0, F32)],
            ),
        ],
    ),
    [Call({'E': 1, '_': 4, 'n': 1}, seed=2460807146, kinds={'x22': 'one', 'y21': 'one'})],
)
