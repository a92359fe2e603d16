"""Prints a kernel with a merge of lane groups in which both loops load lses at an index that is squared 40 times."""

POWERS = "\n".join(f"        %p{i + 1} = arith.muli %p{i}, %p{i} : index" for i in range(40)).replace("%p0", "%k")
LSE = f"""{POWERS}
        %exists = arith.cmpi slt, %k, %n : index
        %mask1 = vector.broadcast %exists : i1 to vector<1xi1>
        %w = vector.maskedload %l[%p40], %mask1, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
        %e = vector.extract %w[0] : f32 from vector<1xf32>
        %lse = arith.select %exists, %e, %inf : f32"""

print(f"""
!col = memref<?xf32, strided<[1], offset: ?>>
mlafix.kernel @powers(%l: !col {{mlafix.dims = ["n"], mlafix.access = "read"}},
    %n: index, %m: f32, %g: i32, %gs: i32, %gt: i32, %me: i32)
    attributes {{guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes>}} {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %one = arith.constant dense<0.0> : vector<1xf32>
  %inf = arith.constant 0xFF800000 : f32
  mlafix.forall (%t) in (%n) {{
    mlafix_thread.row groups(%g, %gs, %gt, %me) {{
      %most = mlafix.merge_loop %k = %c0 to %n step 4 init(%m) : f32 {{
{LSE}
        mlafix.yield %lse : f32
      }}
      %all:3 = mlafix.merge_loop to_first %k = %c0 to %n step 4 init(%most, %m, %zero) : f32, f32, vector<4xf32> attributes {{base = #mlafix.base<2>}} {{
{LSE}
        %weight = arith.subf %lse, %most : f32
        mlafix.yield %most, %weight, %zero : f32, f32, vector<4xf32>
      }}
    }}
  }}
}}
""")
