"""States and rows along a dim of fixed size, by its name and from memory.

Once: expected states of one dim and base, got one along e and one along 20."""

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
#     y: Out[f32, "n e=20"],
#     x: In[f32, "n e=20"],
#     l: In[f32, "n"],
# ):
#     for t in grid("n"):
#         store_state(merge(identity("e", base=2), load_state(x[t], l[t], base=2)), y[t])

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='y', dtype='f32', dims=['n', 'e=20'], access='Out', optional=False),
                            Tensor(name='x', dtype='f32', dims=['n', 'e=20'], access='In', optional=False),
                            Tensor(name='l', dtype='f32', dims=['n'], access='In', optional=False)],
                   scalars=[],
                   grid=Grid(indices=['t'], extents=['n'], segments=False, where=None, where_inline=False),
                   body=[StoreState(state=Node(op='merge',
                                               type=Type(kind='state', dtype='', dim='e', base='2'),
                                               args=[Node(op='identity',
                                                          type=Type(kind='state', dtype='', dim='e', base='2'),
                                                          args=[],
                                                          attrs={}),
                                                     Node(op='load_state',
                                                          type=Type(kind='state', dtype='', dim='e', base='2'),
                                                          args=[Node(op='name',
                                                                     type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                     args=[],
                                                                     attrs={'name': 't'}),
                                                                Node(op='name',
                                                                     type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                     args=[],
                                                                     attrs={'name': 't'})],
                                                          attrs={'lse': 'l', 'split': 1, 'tensor': 'x'})],
                                               attrs={}),
                                    out='y',
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
                   bases={}),
     calls=[Call(sizes={'n': 4},
                 absent=[],
                 dtypes={},
                 bases={},
                 scalars={},
                 layouts={},
                 seed=3,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'l': 'lse'})])
"""
