"""A loop over a tuple whose elements use a name that its body assigns.

Once: the interpreter computed each element before its iteration, Python computes all before the first."""

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
#     z53: InOut[f32, "H qt=1"],
#     count_h: i64.at_most("H"),
#     a9: f32,
# ):
#     for t, h in grid(1, count_h):
#         v11, v12 = f32(1.0), f32(1.0)
#         for w36 in ((4.0 * a9), (-4.701936721801758 + v11),):
#             v11 = w36
#         z53[h, t] = v11

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='z53', dtype='f32', dims=['H', 'qt=1'], access='InOut', optional=False)],
                   scalars=[Scalar(name='count_h', dtype='i64', at_most='H'), Scalar(name='a9', dtype='f32', at_most='')],
                   grid=Grid(indices=['t', 'h'], extents=[1, ('scalar', 'count_h')], segments=False, where=None, where_inline=False),
                   body=[Assign(names=['v11', 'v12'],
                                values=[Node(op='lit',
                                             type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                             args=[],
                                             attrs={'value': 1.0}),
                                        Node(op='lit',
                                             type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                             args=[],
                                             attrs={'value': 1.0})],
                                aug=''),
                         Each(names=['w36'],
                              items=[[Node(op='binary',
                                           type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                           args=[Node(op='lit',
                                                      type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                                      args=[],
                                                      attrs={'value': 4.0}),
                                                 Node(op='name',
                                                      type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                                      args=[],
                                                      attrs={'name': 'a9'})],
                                           attrs={'name': 'mul'})],
                                     [Node(op='binary',
                                           type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                           args=[Node(op='lit',
                                                      type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                                      args=[],
                                                      attrs={'value': -4.701936721801758}),
                                                 Node(op='name',
                                                      type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                                      args=[],
                                                      attrs={'name': 'v11'})],
                                           attrs={'name': 'add'})]],
                              body=[Assign(names=['v11'],
                                           values=[Node(op='name',
                                                        type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                                        args=[],
                                                        attrs={'name': 'w36'})],
                                           aug='')]),
                         Store(tensor='z53',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 'h'}),
                                        Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='name',
                                          type=Type(kind='scalar', dtype='f32', dim='', base=''),
                                          args=[],
                                          attrs={'name': 'v11'}),
                               where=None)],
                   inlines=[],
                   variables={},
                   bases={}),
     calls=[Call(sizes={'H': 1, '_': 3},
                 absent=[],
                 dtypes={},
                 bases={},
                 scalars={'a9': 1.0, 'count_h': 1},
                 layouts={},
                 seed=1704566167,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'z53': 'one'})])
"""
