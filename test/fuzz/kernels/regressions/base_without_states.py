"""Base without states.

Once: error: 'mlafix.kernel' op expected 'defaults' to hold names of the kernel, got 'B'"""

# import math
#
# import mlafix
# from mlafix.dsl import *
#
# LIMIT, HALF, YES, NO = 5, 0.5, True, False
# B = Base("B", default='e')
#
#
# @mlafix.kernel
# def k(
#     y6: InOut[i32, "n"],
#     x9: In[u8, "D"],
#     z10: InOut[f32, "n D"] | None,
# ):
#     for t in grid("n"):
#         store_state(identity("D"), z10[t])

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='y6', dtype='i32', dims=['n'], access='InOut', optional=False),
                            Tensor(name='x9', dtype='u8', dims=['D'], access='In', optional=False),
                            Tensor(name='z10', dtype='f32', dims=['n', 'D'], access='InOut', optional=True)],
                   scalars=[],
                   grid=Grid(indices=['t'], extents=['n'], segments=False, where=None, where_inline=False),
                   body=[StoreState(state=Node(op='identity', type=Type(kind='state', dtype='', dim='D', base='B'), args=[], attrs={}),
                                    out='z10',
                                    out_indices=[Node(op='name',
                                                      type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                      args=[],
                                                      attrs={'name': 't'})],
                                    lse='',
                                    lse_indices=[],
                                    where=None,
                                    scale=None)],
                   inlines=[],
                   variables={},
                   bases={'B': 'e'}),
     calls=[Call(sizes={'D': 1, '_': 2, 'n': 1},
                 absent=['z10'],
                 dtypes={},
                 bases={},
                 scalars={},
                 layouts={},
                 seed=2952004644,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'x9': 'zero', 'y6': 'zero', 'z10': 'one'})])
"""
