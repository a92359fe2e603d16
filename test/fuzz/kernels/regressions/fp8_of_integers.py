"""Integers and booleans to fp8.

Once: expected f8e4m3fn only where it is stored, got arithmetic on it by 'arith.sitofp'."""

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
#     y: Out[f8e4m3fn, "n"],
#     z: Out[f8e4m3fn, "n D"],
#     b: Out[f8e4m3fn, "n"],
#     x: In[i32, "n D"],
#     c: In[bool_, "n"],
#     a: index,
# ):
#     for t in grid("n"):
#         y[t] = f32(a)
#         z[t] = f32(x[t])
#         b[t] = f32(c[t])

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='y', dtype='f8e4m3fn', dims=['n'], access='Out', optional=False),
                            Tensor(name='z', dtype='f8e4m3fn', dims=['n', 'D'], access='Out', optional=False),
                            Tensor(name='b', dtype='f8e4m3fn', dims=['n'], access='Out', optional=False),
                            Tensor(name='x', dtype='i32', dims=['n', 'D'], access='In', optional=False),
                            Tensor(name='c', dtype='bool', dims=['n'], access='In', optional=False)],
                   scalars=[Scalar(name='a', dtype='index', at_most='')],
                   grid=Grid(indices=['t'], extents=['n'], segments=False, where=None, where_inline=False),
                   body=[Store(tensor='y',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='convert',
                                          type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                          args=[Node(op='name',
                                                     type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                     args=[],
                                                     attrs={'name': 'a'})],
                                          attrs={}),
                               where=None),
                         Store(tensor='z',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='convert',
                                          type=Type(kind='row', dtype='f32', dim='D', base=''),
                                          args=[Node(op='load',
                                                     type=Type(kind='row', dtype='i32', dim='D', base=''),
                                                     args=[Node(op='name',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'name': 't'})],
                                                     attrs={'tensor': 'x'})],
                                          attrs={}),
                               where=None),
                         Store(tensor='b',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='convert',
                                          type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                          args=[Node(op='load',
                                                     type=Type(kind='scalar', dtype='bool', dim='', base=''),
                                                     args=[Node(op='name',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'name': 't'})],
                                                     attrs={'tensor': 'c'})],
                                          attrs={}),
                               where=None)],
                   inlines=[],
                   variables={},
                   bases={}),
     calls=[Call(sizes={'D': 5, 'n': 3},
                 absent=[],
                 dtypes={},
                 bases={},
                 scalars={'a': -7},
                 layouts={},
                 seed=1,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'x': 'any'})])
"""
