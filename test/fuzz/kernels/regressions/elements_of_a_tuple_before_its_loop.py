"""A loop over a tuple whose elements use a name that its body assigns.

Once: the interpreter computed each element before its iteration, Python computes all before the first."""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [Tensor('z53', 'f32', ['H', 'qt=1'], 'InOut')],
        [Scalar('count_h', 'i64', 'H'), Scalar('a9', 'f32')],
        Grid(['t', 'h'], [1, ('scalar', 'count_h')]),
        [
            Assign(['v11', 'v12'], [lit(1.0, F32), lit(1.0, F32)]),
            Each(
                ['w36'],
                [
                    [Node('binary', F32, [lit(4.0, F32), name('a9', F32)], {'name': 'mul'})],
                    [Node('binary', F32, [lit(-4.701936721801758, F32), name('v11', F32)], {'name': 'add'})],
                ],
                [Assign(['v11'], [name('w36', F32)])],
            ),
            Store('z53', [name('h', INDEX), name('t', INDEX)], name('v11', F32)),
        ],
    ),
    [Call({'H': 1, '_': 3}, scalars={'a9': 1.0, 'count_h': 1}, seed=1704566167, kinds={'z53': 'one'})],
)
