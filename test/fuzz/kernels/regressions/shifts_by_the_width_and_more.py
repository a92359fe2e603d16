"""Shifts by the width, by more, and by negative amounts, of rows.

Once: poison, so that a store was dropped, or rows differed by batch."""

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
#     y: Out[i32, "n D"],
#     z: Out[i32, "n D"],
#     w: Out[i32, "n D"],
#     x: In[i32, "n D"],
#     by: In[i32, "n D"],
# ):
#     for t in grid("n"):
#         y[t] = (x[t] << 41)
#         z[t] = (x[t] >> -1)
#         w[t] = (x[t] << by[t])

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='y', dtype='i32', dims=['n', 'D'], access='Out', optional=False),
                            Tensor(name='z', dtype='i32', dims=['n', 'D'], access='Out', optional=False),
                            Tensor(name='w', dtype='i32', dims=['n', 'D'], access='Out', optional=False),
                            Tensor(name='x', dtype='i32', dims=['n', 'D'], access='In', optional=False),
                            Tensor(name='by', dtype='i32', dims=['n', 'D'], access='In', optional=False)],
                   scalars=[],
                   grid=Grid(indices=['t'], extents=['n'], segments=False, where=None, where_inline=False),
                   body=[Store(tensor='y',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='binary',
                                          type=Type(kind='row', dtype='i32', dim='D', base=''),
                                          args=[Node(op='load',
                                                     type=Type(kind='row', dtype='i32', dim='D', base=''),
                                                     args=[Node(op='name',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'name': 't'})],
                                                     attrs={'tensor': 'x'}),
                                                Node(op='lit',
                                                     type=Type(kind='scalar', dtype='i32', dim='', base=''),
                                                     args=[],
                                                     attrs={'value': 41})],
                                          attrs={'name': 'shl'}),
                               where=None),
                         Store(tensor='z',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='binary',
                                          type=Type(kind='row', dtype='i32', dim='D', base=''),
                                          args=[Node(op='load',
                                                     type=Type(kind='row', dtype='i32', dim='D', base=''),
                                                     args=[Node(op='name',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'name': 't'})],
                                                     attrs={'tensor': 'x'}),
                                                Node(op='lit',
                                                     type=Type(kind='scalar', dtype='i32', dim='', base=''),
                                                     args=[],
                                                     attrs={'value': -1})],
                                          attrs={'name': 'shr'}),
                               where=None),
                         Store(tensor='w',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='binary',
                                          type=Type(kind='row', dtype='i32', dim='D', base=''),
                                          args=[Node(op='load',
                                                     type=Type(kind='row', dtype='i32', dim='D', base=''),
                                                     args=[Node(op='name',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'name': 't'})],
                                                     attrs={'tensor': 'x'}),
                                                Node(op='load',
                                                     type=Type(kind='row', dtype='i32', dim='D', base=''),
                                                     args=[Node(op='name',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'name': 't'})],
                                                     attrs={'tensor': 'by'})],
                                          attrs={'name': 'shl'}),
                               where=None)],
                   inlines=[],
                   variables={},
                   bases={}),
     calls=[Call(sizes={'D': 5, 'n': 3},
                 absent=[],
                 dtypes={},
                 bases={},
                 scalars={},
                 layouts={},
                 seed=1,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'by': 'any', 'x': 'any'})])
"""
