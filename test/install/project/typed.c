/* Calls scale_rows by name, from C, and launches a bound call. */
#include "scale.h"

#include <stdio.h>

static float x[3][4], y[3][4];

static int countRight(float factor) {
  int right = 0;
  for (int i = 0; i < 12; ++i)
    right += y[i / 4][i % 4] == factor * (float)i;
  return right;
}

int main(void) {
  const int64_t shape[] = {3, 4};
  const mlafix_device cpu = {MLAFIX_CPU, 0};
  mlafix_bound *bound = NULL;
  for (int i = 0; i < 12; ++i)
    x[i / 4][i % 4] = (float)i;
  mlafix_tensor in = mlafix_contiguous(x, MLAFIX_F32, 2, shape, cpu);
  mlafix_tensor out = mlafix_contiguous(y, MLAFIX_F32, 2, shape, cpu);
  if (scale_rows(&out, &in, cpu, NULL, 0) != MLAFIX_OK ||
      scale_rows_bind(&out, &in, cpu, 0, &bound) != MLAFIX_OK) {
    fprintf(stderr, "%s\n", mlafix_last_error());
    return 1;
  }
  int right = countRight(2.0f);
  for (int i = 0; i < 12; ++i)
    y[i / 4][i % 4] = -1.0f;
  if (mlafix_bound_launch(bound, NULL, 0) != MLAFIX_OK || countRight(2) != 12)
    return 1;
  mlafix_bound_destroy(bound);
  in.dtype = MLAFIX_I32;
  if (scale_rows(&out, &in, cpu, NULL, 0) != MLAFIX_INVALID_ARGUMENT)
    return 1;
  printf("%s\n%d of 12 elements are right\n", mlafix_last_error(), right);
  return right == 12 ? 0 : 1;
}
