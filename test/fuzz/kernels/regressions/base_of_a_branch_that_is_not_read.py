"""Base of a branch that is not read: the instrument bound it.

Once: error: expected a name of kernel 'k' to bind ('D', 'n', 'x10'), got 'B'"""

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
#     x10: In[u8, "n"] | None,
#     x11: In[u8, "one=1"],
#     x16: In[f32, "D"],
#     l17: In[f32, "one=1"],
#     x19: In[i32, "n two18=2"],
# ):
#     for t in grid("n"):
#         if (not False):
#             pass
#         elif (x11[0] == x10[0]):
#             v18 = load_state(x16[:], l17[0])

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='x10', dtype='u8', dims=['n'], access='In', optional=True),
                            Tensor(name='x11', dtype='u8', dims=['one=1'], access='In', optional=False),
                            Tensor(name='x16', dtype='f32', dims=['D'], access='In', optional=False),
                            Tensor(name='l17', dtype='f32', dims=['one=1'], access='In', optional=False),
                            Tensor(name='x19', dtype='i32', dims=['n', 'two18=2'], access='In', optional=False)],
                   scalars=[],
                   grid=Grid(indices=['t'], extents=['n'], segments=False, where=None, where_inline=False),
                   body=[If(condition=Node(op='unary',
                                           type=Type(kind='scalar', dtype='bool', dim='', base=''),
                                           args=[Node(op='lit',
                                                      type=Type(kind='scalar', dtype='bool', dim='', base=''),
                                                      args=[],
                                                      attrs={'value': False})],
                                           attrs={'name': 'not'}),
                            then=[],
                            orelse=[If(condition=Node(op='compare',
                                                      type=Type(kind='scalar', dtype='bool', dim='', base=''),
                                                      args=[Node(op='load',
                                                                 type=Type(kind='scalar', dtype='u8', dim='', base=''),
                                                                 args=[Node(op='lit',
                                                                            type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                            args=[],
                                                                            attrs={'value': 0})],
                                                                 attrs={'tensor': 'x11'}),
                                                            Node(op='load',
                                                                 type=Type(kind='scalar', dtype='u8', dim='', base=''),
                                                                 args=[Node(op='lit',
                                                                            type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                            args=[],
                                                                            attrs={'value': 0})],
                                                                 attrs={'tensor': 'x10'})],
                                                      attrs={'ops': ['eq']}),
                                       then=[Assign(names=['v18'],
                                                    values=[Node(op='load_state',
                                                                 type=Type(kind='state', dtype='', dim='D', base='B'),
                                                                 args=[Node(op='lit',
                                                                            type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                            args=[],
                                                                            attrs={'value': 0})],
                                                                 attrs={'lse': 'l17', 'split': 0, 'tensor': 'x16'})],
                                                    aug='')],
                                       orelse=[])])],
                   inlines=[],
                   variables={},
                   bases={'B': 'e'}),
     calls=[Call(sizes={'D': 1, '_': 3, 'n': 1},
                 absent=[],
                 dtypes={},
                 bases={'B': '2'},
                 scalars={},
                 layouts={},
                 seed=1380848029,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'l17': 'one', 'x10': 'zero', 'x11': 'zero', 'x16': 'one', 'x19': 'zero'})])
"""
