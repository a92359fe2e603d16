"""An omitted tensor reads as zeros where the predicate holds, whatever otherwise= says.

Once: otherwise= there, too."""

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
#     z: Out[f32, "n D"],
#     c: In[bool_, "n"],
#     x: In[f32, "n"] | None,
#     w: In[f32, "n D"] | None,
# ):
#     for t in grid("n"):
#         y[t] = load(x[t], where=(0 <= t < 99), otherwise=0.5)
#         z[t] = (w[t] if c[t] else 5.0)

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='y', dtype='f32', dims=['n'], access='Out', optional=False),
                            Tensor(name='z', dtype='f32', dims=['n', 'D'], access='Out', optional=False),
                            Tensor(name='c', dtype='bool', dims=['n'], access='In', optional=False),
                            Tensor(name='x', dtype='f32', dims=['n'], access='In', optional=True),
                            Tensor(name='w', dtype='f32', dims=['n', 'D'], access='In', optional=True)],
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
                                                Node(op='compare',
                                                     type=Type(kind='scalar', dtype='bool', dim='', base=''),
                                                     args=[Node(op='lit',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'value': 0}),
                                                           Node(op='name',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'name': 't'}),
                                                           Node(op='lit',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'value': 99})],
                                                     attrs={'ops': ['le', 'lt']}),
                                                Node(op='lit',
                                                     type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                                     args=[],
                                                     attrs={'value': 0.5})],
                                          attrs={'other': True, 'tensor': 'x', 'where': True}),
                               where=None),
                         Store(tensor='z',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='ifexp',
                                          type=Type(kind='row', dtype='f32', dim='D', base=''),
                                          args=[Node(op='load',
                                                     type=Type(kind='scalar', dtype='bool', dim='', base=''),
                                                     args=[Node(op='name',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'name': 't'})],
                                                     attrs={'tensor': 'c'}),
                                                Node(op='load',
                                                     type=Type(kind='row', dtype='f32', dim='D', base=''),
                                                     args=[Node(op='name',
                                                                type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                                args=[],
                                                                attrs={'name': 't'})],
                                                     attrs={'tensor': 'w'}),
                                                Node(op='lit',
                                                     type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                                     args=[],
                                                     attrs={'value': 5.0})],
                                          attrs={}),
                               where=None)],
                   inlines=[],
                   variables={},
                   bases={}),
     calls=[Call(sizes={'D': 5, 'n': 3},
                 absent=['x', 'w'],
                 dtypes={},
                 bases={},
                 scalars={},
                 layouts={},
                 seed=1,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={})])
"""
