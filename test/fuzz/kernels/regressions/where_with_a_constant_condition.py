"""Where with a constant condition.

Once: error: expected one type for 'v4' after the branch, got i32 if the condition holds and a row of i32 along D if not"""

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
#     x1: In[i32, "qj=2 m n D"],
#     x12: In[i32, "n qh=3 D"],
#     x16: In[f32, "qj=2 n m"] | None,
# ):
#     for t, h, j in grid("n", 3, 2):
#         v3, v4 = x1[0, 0, 0], x12[0, 0]
#         if (x16 is not None):
#             v4 = where(False, x1[0, 0, 0], 5)

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='x1', dtype='i32', dims=['qj=2', 'm', 'n', 'D'], access='In', optional=False),
                            Tensor(name='x12', dtype='i32', dims=['n', 'qh=3', 'D'], access='In', optional=False),
                            Tensor(name='x16', dtype='f32', dims=['qj=2', 'n', 'm'], access='In', optional=True)],
                   scalars=[],
                   grid=Grid(indices=['t', 'h', 'j'], extents=['n', 3, 2], segments=False, where=None, where_inline=False),
                   body=[Assign(names=['v3', 'v4'],
                                values=[Node(op='load',
                                             type=Type(kind='row', dtype='i32', dim='D', base=''),
                                             args=[Node(op='lit',
                                                        type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                        args=[],
                                                        attrs={'value': 0}),
                                                   Node(op='lit',
                                                        type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                        args=[],
                                                        attrs={'value': 0}),
                                                   Node(op='lit',
                                                        type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                        args=[],
                                                        attrs={'value': 0})],
                                             attrs={'tensor': 'x1'}),
                                        Node(op='load',
                                             type=Type(kind='row', dtype='i32', dim='D', base=''),
                                             args=[Node(op='lit',
                                                        type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                        args=[],
                                                        attrs={'value': 0}),
                                                   Node(op='lit',
                                                        type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                        args=[],
                                                        attrs={'value': 0})],
                                             attrs={'tensor': 'x12'})],
                                aug=''),
                         If(condition=Node(op='present',
                                           type=Type(kind='scalar', dtype='bool', dim='', base=''),
                                           args=[],
                                           attrs={'style': 'is not None', 'tensor': 'x16'}),
                            then=[Assign(names=['v4'],
                                         values=[Node(op='where',
                                                      type=Type(kind='row', dtype='i32', dim='D', base=''),
                                                      args=[Node(op='lit',
                                                                 type=Type(kind='scalar', dtype='bool', dim='', base=''),
                                                                 args=[],
                                                                 attrs={'value': False}),
                                                            Node(op='load',
                                                                 type=Type(kind='row', dtype='i32', dim='D', base=''),
                                                                 args=[Node(op='lit',
                                                                            type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                            args=[],
                                                                            attrs={'value': 0}),
                                                                       Node(op='lit',
                                                                            type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                            args=[],
                                                                            attrs={'value': 0}),
                                                                       Node(op='lit',
                                                                            type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                            args=[],
                                                                            attrs={'value': 0})],
                                                                 attrs={'tensor': 'x1'}),
                                                            Node(op='lit',
                                                                 type=Type(kind='scalar', dtype='i32', dim='', base=''),
                                                                 args=[],
                                                                 attrs={'value': 5})],
                                                      attrs={})],
                                         aug='')],
                            orelse=[])],
                   inlines=[],
                   variables={},
                   bases={}),
     calls=[Call(sizes={'D': 1, '_': 4, 'm': 1, 'n': 1},
                 absent=[],
                 dtypes={},
                 bases={},
                 scalars={},
                 layouts={},
                 seed=1486840723,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'x1': 'zero', 'x12': 'zero', 'x16': 'one'})])
"""
