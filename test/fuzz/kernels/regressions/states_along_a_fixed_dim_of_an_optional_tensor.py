"""States along a fixed dim of an optional tensor: the interpreter did not know its size.

Once: invalid: KeyError: 'e'"""

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
#     x7: In[f32, "two6=2 e=20"] | None,
#     l8: In[f32, "two6=2"],
#     z12: InOut[f32, "n H two11=2"],
# ):
#     for t, h in grid("n", "H"):
#         store_state(load_state(x7[0], l8[0]), None, z12[t, h, 1])

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='x7', dtype='f32', dims=['two6=2', 'e=20'], access='In', optional=True),
                            Tensor(name='l8', dtype='f32', dims=['two6=2'], access='In', optional=False),
                            Tensor(name='z12', dtype='f32', dims=['n', 'H', 'two11=2'], access='InOut', optional=False)],
                   scalars=[],
                   grid=Grid(indices=['t', 'h'], extents=['n', 'H'], segments=False, where=None, where_inline=False),
                   body=[StoreState(state=Node(op='load_state',
                                               type=Type(kind='state', dtype='', dim='e', base='B'),
                                               args=[Node(op='lit',
                                                          type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                          args=[],
                                                          attrs={'value': 0}),
                                                     Node(op='lit',
                                                          type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                          args=[],
                                                          attrs={'value': 0})],
                                               attrs={'lse': 'l8', 'split': 1, 'tensor': 'x7'}),
                                    out='',
                                    out_indices=[],
                                    lse='z12',
                                    lse_indices=[Node(op='name',
                                                      type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                      args=[],
                                                      attrs={'name': 't'}),
                                                 Node(op='name',
                                                      type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                      args=[],
                                                      attrs={'name': 'h'}),
                                                 Node(op='lit',
                                                      type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                      args=[],
                                                      attrs={'value': 1})],
                                    where=None,
                                    scale=None)],
                   inlines=[],
                   variables={},
                   bases={'B': 'e'}),
     calls=[Call(sizes={'H': 1, '_': 2, 'n': 1},
                 absent=[],
                 dtypes={},
                 bases={},
                 scalars={},
                 layouts={},
                 seed=2052330305,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'l8': 'one', 'x7': 'one', 'z12': 'one'})])
"""
