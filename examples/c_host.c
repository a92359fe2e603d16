/*===- c_host.c - launch a kernel from plain C ----------------------------===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Merges two partial attention states in place on the CPU, and shows the     *|
|* error of a wrong call. The states are f32, with 16 heads and D = 128. The  *|
|* build compiles kernels/merge_attn_states.mlir, embeds the unit in this     *|
|* program, and writes merge.h (mlafix_add_unit in examples/CMakeLists.txt).  *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "merge.h"

#include <math.h>
#include <stdio.h>

enum { N = 3, H = 16, D = 128 };

static float Prefix[N][H][D], Suffix[N][H][D];
static float PrefixLse[H][N], SuffixLse[H][N];

/* Both sides of row 0 have the same weight. The prefix of row 1 is empty, and
   its payload NaN. Row 2 is past the threshold, and its prefix payload NaN. */
static void fill(void) {
  for (int T = 0; T < N; ++T)
    for (int Head = 0; Head < H; ++Head) {
      PrefixLse[Head][T] = T == 1 ? -INFINITY : 1.0f;
      SuffixLse[Head][T] = 1.0f;
      for (int I = 0; I < D; ++I) {
        Prefix[T][Head][I] = T == 0 ? 2.0f : NAN;
        Suffix[T][Head][I] = 4.0f;
      }
    }
}

int main(void) {
  const int64_t Rows[] = {N, H, D}, Lses[] = {H, N}, Fewer[] = {N - 1, H, D};
  const mlafix_device Cpu = {MLAFIX_CPU, 0};
  fill();

  mlafix_tensor P = mlafix_contiguous(Prefix, MLAFIX_F32, 3, Rows, Cpu);
  mlafix_tensor S = mlafix_contiguous(Suffix, MLAFIX_F32, 3, Rows, Cpu);
  mlafix_tensor PL = mlafix_contiguous(PrefixLse, MLAFIX_F32, 2, Lses, Cpu);
  mlafix_tensor SL = mlafix_contiguous(SuffixLse, MLAFIX_F32, 2, Lses, Cpu);
  mlafix_status Status =
      merge_attn_states(&P, &PL, &P, &PL, &S, &SL, 2, Cpu, NULL, 0);
  if (Status != MLAFIX_OK) {
    fprintf(stderr, "%s: %s\n", mlafix_status_name(Status),
            mlafix_last_error());
    return 1;
  }
  printf("rows of 2.0, empty, past the threshold, merged with rows of 4.0: "
         "%.1f %.1f %.1f\n",
         Prefix[0][0][0], Prefix[1][H - 1][D - 1], Prefix[2][0][0]);
  if (Prefix[0][0][0] != 3.0f || Prefix[1][H - 1][D - 1] != 4.0f ||
      Prefix[2][0][0] != 4.0f)
    return 1;

  /* A wrong call launches nothing, and mlafix_last_error() says why. */
  S.sizes = Fewer;
  if (merge_attn_states(&P, &PL, &P, &PL, &S, &SL, 2, Cpu, NULL, 0) !=
      MLAFIX_INVALID_ARGUMENT)
    return 1;
  printf("with one row missing: %s\n", mlafix_last_error());
  return 0;
}
