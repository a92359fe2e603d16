"""Rows along a fixed dim.

Once: error: expected a row along e to store to 'z20', got a row of f32 along 8"""

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
#     x7: In[f32, "e=8"],
#     z20: InOut[f32, "n e=8"],
# ):
#     for t in grid("n"):
#         z20[t] = x7[:]

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='x7', dtype='f32', dims=['e=8'], access='In', optional=False),
                            Tensor(name='z20', dtype='f32', dims=['n', 'e=8'], access='InOut', optional=False)],
                   scalars=[],
                   grid=Grid(indices=['t'], extents=['n'], segments=False, where=None, where_inline=False),
                   body=[Store(tensor='z20',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='load', type=Type(kind='row', dtype='f32', dim='e', base=''), args=[], attrs={'tensor': 'x7'}),
                               where=None)],
                   inlines=[],
                   variables={},
                   bases={}),
     calls=[Call(sizes={'_': 4, 'n': 1},
                 absent=[],
                 dtypes={},
                 bases={},
                 scalars={},
                 layouts={},
                 seed=1996412365,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'x7': 'one', 'z20': 'one'})])
"""
