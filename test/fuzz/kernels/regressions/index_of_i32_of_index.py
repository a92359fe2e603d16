"""An index that loses bits on its way through i32.

Once: both casts folded away, and a clamped index read another element."""

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
#     y: Out[f32, "n"],
#     x: In[f32, "n D"],
#     a: index,
# ):
#     for t in grid("n"):
#         y[t] = x[t, max(min(index(i32(a)), 4), 0)]

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='y', dtype='f32', dims=['n'], access='Out', optional=False),
                            Tensor(name='x', dtype='f32', dims=['n', 'D'], access='In', optional=False)],
                   scalars=[Scalar(name='a', dtype='index', at_most='')],
                   grid=Grid(indices=['t'], extents=['n'], segments=False, where=None, where_inline=False),
                   body=[Store(tensor='y',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='load',
                                          type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                          args=[Node(op='name',
                                                     type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                     args=[],
                                                     attrs={'name': 't'}),
                                                Node(op='binary',
                                                     type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                     args=[Node(op='binary',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[Node(op='convert',
                                                                           type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                           args=[Node(op='convert',
                                                                                      type=Type(kind='scalar',
                                                                                                dtype='i32',
                                                                                                dim='',
                                                                                                base=''),
                                                                                      args=[Node(op='name',
                                                                                                 type=Type(kind='scalar',
                                                                                                           dtype='index',
                                                                                                           dim='',
                                                                                                           base=''),
                                                                                                 args=[],
                                                                                                 attrs={'name': 'a'})],
                                                                                      attrs={})],
                                                                           attrs={}),
                                                                      Node(op='lit',
                                                                           type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                           args=[],
                                                                           attrs={'value': 4})],
                                                                attrs={'name': 'min'}),
                                                           Node(op='lit',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'value': 0})],
                                                     attrs={'name': 'max'})],
                                          attrs={'tensor': 'x'}),
                               where=None)],
                   inlines=[],
                   variables={},
                   bases={}),
     calls=[Call(sizes={'D': 5, 'n': 3},
                 absent=[],
                 dtypes={},
                 bases={},
                 scalars={'a': 3074457345618258602},
                 layouts={},
                 seed=1,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'x': 'whole'})])
"""
