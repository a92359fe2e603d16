"""Where with a constant condition.

Once: error: expected one type for 'v4' after the branch, got i32 if the condition holds and a row of i32 along D if not"""

from syntax import *  # noqa: F403

CASE = Case(
    Kernel(
        [
            Tensor('x1', 'i32', ['qj=2', 'm', 'n', 'D'], 'In'),
            Tensor('x12', 'i32', ['n', 'qh=3', 'D'], 'In'),
            Tensor('x16', 'f32', ['qj=2', 'n', 'm'], 'In', True),
        ],
        [],
        Grid(['t', 'h', 'j'], ['n', 3, 2]),
        [
            Assign(
                ['v3', 'v4'],
                [
                    Node(
                        'load',
                        Type('row', 'i32', 'D'),
                        [lit(0, INDEX), lit(0, INDEX), lit(0, INDEX)],
                        {'tensor': 'x1'},
                    ),
                    Node('load', Type('row', 'i32', 'D'), [lit(0, INDEX), lit(0, INDEX)], {'tensor': 'x12'}),
                ],
            ),
            If(
                Node('present', BOOL, attrs={'style': 'is not None', 'tensor': 'x16'}),
                [
                    Assign(
                        ['v4'],
                        [
                            Node(
                                'where',
                                Type('row', 'i32', 'D'),
                                [
                                    lit(False, BOOL),
                                    Node(
                                        'load',
                                        Type('row', 'i32', 'D'),
                                        [lit(0, INDEX), lit(0, INDEX), lit(0, INDEX)],
                                        {'tensor': 'x1'},
                                    ),
                                    lit(5, I32),
                                ],
                            ),
                        ],
                    ),
                ],
                [],
            ),
        ],
    ),
    [Call({'D': 1, '_': 4, 'm': 1, 'n': 1}, seed=1486840723, kinds={'x1': 'zero', 'x12': 'zero', 'x16': 'one'})],
)
