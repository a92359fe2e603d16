"""A dtype variable with a default that only an omitted tensor has.

Once: expected 'defaults' to hold names of the kernel, got 'T'."""

# import math
#
# import mlafix
# from mlafix.dsl import *
#
# LIMIT, HALF, YES, NO = 5, 0.5, True, False
# T = DType("T", default=bf16)
#
#
# @mlafix.kernel
# def k(
#     y: Out[T, "n D"] | None,
#     z: Out[f32, "n"],
#     x: In[f32, "D"],
# ):
#     for t in grid("n"):
#         store_state(identity("D", base=2), y[t], z[t])

CASE = """
Case(kernel=Kernel(tensors=[Tensor(name='y', dtype='T', dims=['n', 'D'], access='Out', optional=True),
                            Tensor(name='z', dtype='f32', dims=['n'], access='Out', optional=False),
                            Tensor(name='x', dtype='f32', dims=['D'], access='In', optional=False)],
                   scalars=[],
                   grid=Grid(indices=['t'], extents=['n'], segments=False, where=None, where_inline=False),
                   body=[StoreState(state=Node(op='identity', type=Type(kind='state', dtype='', dim='D', base='2'), args=[], attrs={}),
                                    out='y',
                                    out_indices=[Node(op='name',
                                                      type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                      args=[],
                                                      attrs={'name': 't'})],
                                    lse='z',
                                    lse_indices=[Node(op='name',
                                                      type=Type(kind='scalar', dtype='index', dim='', base=''),
                                                      args=[],
                                                      attrs={'name': 't'})],
                                    where=None,
                                    scale=None)],
                   inlines=[],
                   variables={'T': 'bf16'},
                   bases={}),
     calls=[Call(sizes={'D': 5, 'n': 3},
                 absent=['y'],
                 dtypes={'T': 'f32'},
                 bases={},
                 scalars={},
                 layouts={},
                 seed=1,
                 values={},
                 aliases={},
                 bound=[],
                 kinds={})])
"""
