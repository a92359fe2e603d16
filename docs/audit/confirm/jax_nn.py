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


def attend(v, lengths, dtype=jnp.float32, **options):
    """One query of zeros and keys of zeros: the result is the mean of the values that it sees, the lse the logarithm of their number."""
    q, k = jnp.zeros((1, 1, 1, 4), dtype), jnp.zeros((1, len(v), 1, 4), dtype)
    v = jnp.broadcast_to(jnp.asarray(v, dtype)[None, :, None, None], k.shape)
    return jax.nn.dot_product_attention(q, k, v, key_value_seq_lengths=jnp.asarray(lengths, jnp.int32), return_residual=True, **options)


out, lse = attend([5.0, 7.0], [0])
check("a sequence of length 0", 0.0, float(out[0, 0, 0, 0]))
check("its lse", float("-inf"), float(lse[0, 0, 0]))
out, lse = attend([5.0, np.nan], [1])
check("one key; NaN behind the length", 5.0, float(jnp.nan_to_num(out[0, 0, 0, 0], nan=-1.0)))
check("the dtype of the lse of a call in bf16", "float32", str(attend([1.0], [1], jnp.bfloat16)[1].dtype))
sys.exit(wrong > 0)
