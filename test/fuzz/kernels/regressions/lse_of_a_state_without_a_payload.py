"""Lse of a state without a payload.

Once: error: expected a size for dim 'D' of kernel 'k', got no binding of it"""

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
#     y3: Out[f32, "n H D"] | None,
#     l2: In[f32, "n"],
#     y4: Out[f32, "H n"],
#     x1: In[f32, "n D"] | None,
# ):
#     for t, h in grid("n", "H"):
#         store_state(load_state(x1[0], l2[0], base=2), y3[t, h], y4[h, t])

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='y3', dtype='f32', dims=['n', 'H', 'D'], access='Out', optional=True),
                            Tensor(name='l2', dtype='f32', dims=['n'], access='In', optional=False),
                            Tensor(name='y4', dtype='f32', dims=['H', 'n'], access='Out', optional=False),
                            Tensor(name='x1', dtype='f32', dims=['n', 'D'], access='In', optional=True)],
                   scalars=[],
                   grid=Grid(indices=['t', 'h'], extents=['n', 'H'], segments=False, where=None, where_inline=False),
                   body=[StoreState(state=Node(op='load_state',
                                               type=Type(kind='state', dtype='', dim='D', base='2'),
                                               args=[Node(op='lit',
                                                          type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                          args=[],
                                                          attrs={'value': 0}),
                                                     Node(op='lit',
                                                          type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                          args=[],
                                                          attrs={'value': 0})],
                                               attrs={'lse': 'l2', 'split': 1, 'tensor': 'x1'}),
                                    out='y3',
                                    out_indices=[Node(op='name',
                                                      type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                      args=[],
                                                      attrs={'name': 't'}),
                                                 Node(op='name',
                                                      type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                      args=[],
                                                      attrs={'name': 'h'})],
                                    lse='y4',
                                    lse_indices=[Node(op='name',
                                                      type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                      args=[],
                                                      attrs={'name': 'h'}),
                                                 Node(op='name',
                                                      type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                      args=[],
                                                      attrs={'name': 't'})],
                                    where=None,
                                    scale=None)],
                   inlines=[],
                   variables={},
                   bases={}),
     calls=[Call(sizes={'D': 1, 'H': 1, '_': 3, 'n': 1},
                 absent=['y3', 'x1'],
                 dtypes={},
                 bases={},
                 scalars={},
                 layouts={},
                 seed=324702447,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'l2': 'one', 'x1': 'one', 'y3': 'one', 'y4': 'one'})])
"""
