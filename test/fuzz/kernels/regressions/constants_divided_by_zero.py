"""Constants divided by zero.

Once: error: expected a number, got ZeroDivisionError: float division by zero"""

# import math
#
# import mlafix
# from mlafix.dsl import *
#
# LIMIT, HALF, YES, NO = 5, 0.5, True, False
#
#
# @mlafix.inline
# def g1(p5, p6=0.0):
#     v7 = (0.0 / p6)
#     return splat(1.0, "E")
#
#
# @mlafix.kernel
# def k(
#     x22: In[f32, "n E"],
#     y21: Out[f32, "n E"],
# ):
#     for t in grid("n"):
#         y21[t] = g1(x22[0])

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='x22', dtype='f32', dims=['n', 'E'], access='In', optional=False),
                            Tensor(name='y21', dtype='f32', dims=['n', 'E'], access='Out', optional=False)],
                   scalars=[],
                   grid=Grid(indices=['t'], extents=['n'], segments=False, where=None, where_inline=False),
                   body=[Store(tensor='y21',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='call',
                                          type=Type(kind='row', dtype='f32', dim='E', base=''),
                                          args=[Node(op='load',
                                                     type=Type(kind='row', dtype='f32', dim='E', base=''),
                                                     args=[Node(op='lit',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'value': 0})],
                                                     attrs={'tensor': 'x22'})],
                                          attrs={'function': 'g1'}),
                               where=None)],
                   inlines=[Inline(name='g1',
                                   parameters=['p5', 'p6'],
                                   types=[Type(kind='row', dtype='f32', dim='E', base=''),
                                          Type(kind='scalar', dtype='f32', dim='', base='')],
                                   body=[Assign(names=['v7'],
                                                values=[Node(op='binary',
                                                             type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                                             args=[Node(op='lit',
                                                                        type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                                                        args=[],
                                                                        attrs={'value': 0.0}),
                                                                   Node(op='name',
                                                                        type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                                                        args=[],
                                                                        attrs={'name': 'p6'})],
                                                             attrs={'name': 'div'})],
                                                aug='')],
                                   result=Node(op='splat',
                                               type=Type(kind='row', dtype='f32', dim='E', base=''),
                                               args=[Node(op='lit',
                                                          type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                                          args=[],
                                                          attrs={'value': 1.0})],
                                               attrs={}),
                                   defaults=[Node(op='lit',
                                                  type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                                  args=[],
                                                  attrs={'value': 0.0})])],
                   variables={},
                   bases={}),
     calls=[Call(sizes={'E': 1, '_': 4, 'n': 1},
                 absent=[],
                 dtypes={},
                 bases={},
                 scalars={},
                 layouts={},
                 seed=2460807146,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'x22': 'one', 'y21': 'one'})])
"""
