"""f16 and bf16 to fp8 without arithmetic: numbers, rows, rows of a dtype variable.

Once: the lowered module cannot be written as LLVM IR."""

# import math
#
# import mlafix
# from mlafix.dsl import *
#
# LIMIT, HALF, YES, NO = 5, 0.5, True, False
# T = DType("T")
#
#
# @mlafix.kernel
# def k(
#     y: Out[f8e4m3fn, "n"],
#     z: Out[f8e4m3fn, "n D"],
#     w: Out[f8e4m3fn, "n D"],
#     x: In[f16, "n D"],
#     u: In[T, "n D"],
# ):
#     for t in grid("n"):
#         y[t] = x[t, 0]
#         z[t] = x[t]
#         w[t] = u[t]

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='y', dtype='f8e4m3fn', dims=['n'], access='Out', optional=False),
                            Tensor(name='z', dtype='f8e4m3fn', dims=['n', 'D'], access='Out', optional=False),
                            Tensor(name='w', dtype='f8e4m3fn', dims=['n', 'D'], access='Out', optional=False),
                            Tensor(name='x', dtype='f16', dims=['n', 'D'], access='In', optional=False),
                            Tensor(name='u', dtype='T', dims=['n', 'D'], access='In', optional=False)],
                   scalars=[],
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
                                                Node(op='lit',
                                                     type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                     args=[],
                                                     attrs={'value': 0})],
                                          attrs={'tensor': 'x'}),
                               where=None),
                         Store(tensor='z',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='load',
                                          type=Type(kind='row', dtype='f32', dim='D', base=''),
                                          args=[Node(op='name',
                                                     type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                     args=[],
                                                     attrs={'name': 't'})],
                                          attrs={'tensor': 'x'}),
                               where=None),
                         Store(tensor='w',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='load',
                                          type=Type(kind='row', dtype='f32', dim='D', base=''),
                                          args=[Node(op='name',
                                                     type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                     args=[],
                                                     attrs={'name': 't'})],
                                          attrs={'tensor': 'u'}),
                               where=None)],
                   inlines=[],
                   variables={'T': ''},
                   bases={}),
     calls=[Call(sizes={'D': 5, 'n': 3},
                 absent=[],
                 dtypes={'T': 'bf16'},
                 bases={},
                 scalars={},
                 layouts={},
                 seed=1,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'u': 'special', 'x': 'special'})])
"""
