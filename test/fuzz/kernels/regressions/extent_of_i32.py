"""Extent of i32.

Once: error: expected a grid around this, got the top of the kernel"""

# import math
#
# import mlafix
# from mlafix.dsl import *
#
# LIMIT, HALF, YES, NO = 5, 0.5, True, False
#
#
# @mlafix.kernel
# def k(
#     x2: In[f32, "n H m E"],
#     count_t: i32.at_most("n"),
# ):
#     for t, h in grid(count_t, "H"):
#         pass

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='x2', dtype='f32', dims=['n', 'H', 'm', 'E'], access='In', optional=False)],
                   scalars=[Scalar(name='count_t', dtype='i32', at_most='n')],
                   grid=Grid(indices=['t', 'h'], extents=[('scalar', 'count_t'), 'H'], segments=False, where=None, where_inline=False),
                   body=[],
                   inlines=[],
                   variables={},
                   bases={}),
     calls=[Call(sizes={'E': 1, 'H': 1, '_': 3, 'm': 1, 'n': 1},
                 absent=[],
                 dtypes={},
                 bases={},
                 scalars={'count_t': 1},
                 layouts={},
                 seed=2774171618,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'x2': 'one'})])
"""
