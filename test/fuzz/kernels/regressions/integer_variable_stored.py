"""Integer variable stored.

Once: error: 'mlafix.store' op expected 'i32' for elements of type 'i32', got 'i64'"""

# import math
#
# import mlafix
# from mlafix.dsl import *
#
# LIMIT, HALF, YES, NO = 5, 0.5, True, False
# I = DType("I", default=i32)
#
#
# @mlafix.kernel
# def k(
#     y7: Out[I, "H n D"],
# ):
#     for t, h in grid("n", "H"):
#         y7[h, t] = 5

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='y7', dtype='I', dims=['H', 'n', 'D'], access='Out', optional=False)],
                   scalars=[],
                   grid=Grid(indices=['t', 'h'], extents=['n', 'H'], segments=False, where=None, where_inline=False),
                   body=[Store(tensor='y7',
                               indices=[Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 'h'}),
                                        Node(op='name',
                                             type=Type(kind='scalar', dtype='index', dim='', base=''),
                                             args=[],
                                             attrs={'name': 't'})],
                               value=Node(op='lit', type=Type(kind='scalar', dtype='i64', dim='', base=''), args=[], attrs={'value': 5}),
                               where=None)],
                   inlines=[],
                   variables={'I': 'i32'},
                   bases={}),
     calls=[Call(sizes={'D': 1, 'H': 1, '_': 1, 'n': 1},
                 absent=[],
                 dtypes={'I': 'i64'},
                 bases={},
                 scalars={},
                 layouts={},
                 seed=1930786176,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={'y7': 'zero'})])
"""
