"""What the card of jax.nn.dot_product_attention says, with jax and numpy alone. Exits with status 1 while any of it is so."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

wrong = 0


def check(what: str, expected: object, got: object) -> None:
    global wrong
    wrong += expected != got
    print(f"{'ok   ' if expected == got else 'WRONG'} {what}: expected {expected}, got {got}")


def attend(v, lengths, dtype, **options):
    """One query of zeros and keys of zeros: the result is the mean of the values that it sees, the lse the logarithm of their number."""
    q, k = jnp.zeros((1, 1, 1, 4), dtype), jnp.zeros((1, len(v), 1, 4), dtype)
    v = jnp.broadcast_to(jnp.asarray(v, dtype)[None, :, None, None], k.shape)
    out, lse = jax.nn.dot_product_attention(q, k, v, key_value_seq_lengths=jnp.asarray(lengths, jnp.int32), return_residual=True, **options)
    return float(jnp.nan_to_num(out[0, 0, 0, 0], nan=-1.0)), lse


for dtype in jnp.float32, jnp.bfloat16:
    name = jnp.dtype(dtype).name
    out, lse = attend([5.0, 7.0], [0], dtype)
    check(f"{name}: a sequence of length 0", 0.0, out)
    check(f"{name}: its lse", float("-inf"), float(lse[0, 0, 0]))
    check(f"{name}: one key; NaN behind the length", 5.0, attend([5.0, np.nan], [1], dtype)[0])
    masked = jnp.zeros((1, 1, 1, 2), bool)
    check(f"{name}: a row whose keys are all masked", 0.0, attend([5.0, 7.0], [2], dtype, mask=masked)[0])
lse = attend([1.0] * 17, [17], jnp.bfloat16)[1]
check("the dtype of the lse of a call in bf16", "float32", str(lse.dtype))
check("the lse of 17 such keys, to six digits", f"{np.log(17):.5f}", f"{float(lse[0, 0, 0]):.5f}")
sys.exit(wrong > 0)
