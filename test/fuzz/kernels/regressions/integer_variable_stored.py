"""Integer variable stored.

Once: error: 'mlafix.store' op expected 'i32' for elements of type 'i32', got 'i64'"""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [Tensor('y7', 'I', ['H', 'n', 'D'], 'Out')],
        [],
        Grid(['t', 'h'], ['n', 'H']),
        [Store('y7', [name('h', INDEX), name('t', INDEX)], lit(5, I64))],
        variables={'I': 'i32'},
    ),
    [Call({'D': 1, 'H': 1, '_': 1, 'n': 1}, dtypes={'I': 'i64'}, seed=1930786176, kinds={'y7': 'zero'})],
)
