/*===- c_host.c - launch a kernel from plain C ----------------------------===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Usage: c_host merge_attn_states.mlafix                                     *|
|*                                                                            *|
|* Loads a unit, merges two partial attention states on the CPU, in place,    *|
|* and shows what a wrong call is answered with. f32, 16 heads, D = 128.      *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "mlafix/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 3, H = 16, D = 128 };

/* Says why and leaves, unless all is well. */
static void check(mlafix_status Status, const char *Call) {
  if (Status == MLAFIX_OK)
    return;
  fprintf(stderr, "%s: %s: %s\n", Call, mlafix_status_name(Status),
          mlafix_last_error());
  exit(1);
}

static mlafix_tensor tensor(void *Data, uint32_t Dims, const int64_t *Sizes) {
  mlafix_tensor T = MLAFIX_TENSOR_INIT;
  T.dtype = MLAFIX_F32;
  T.ndim = Dims;
  T.device.type = MLAFIX_CPU;
  T.data = Data;
  T.sizes = Sizes; /* no strides: contiguous */
  return T;
}

static mlafix_arg argument(const mlafix_tensor *T) {
  mlafix_arg A = {sizeof(mlafix_arg), MLAFIX_ARG_TENSOR, {T}};
  return A;
}

int main(int Argc, char **Argv) {
  static float Prefix[N][H][D], Suffix[N][H][D];
  static float PrefixLse[H][N], SuffixLse[H][N];
  const int64_t RowSizes[] = {N, H, D}, LseSizes[] = {H, N};
  const mlafix_device Cpu = {MLAFIX_CPU, 0};
  mlafix_unit *Unit;
  const mlafix_kernel *Merge;
  mlafix_tensor P, PLse, S, SLse, Short;
  mlafix_arg Args[7];
  int64_t ShortSizes[] = {N - 1, H, D};

  if (Argc != 2) {
    fprintf(stderr, "usage: c_host merge_attn_states.mlafix\n");
    return 2;
  }
  /* Row 0: equal weights. Row 1: the prefix is empty, its payload garbage.
     Row 2: past the threshold. */
  for (int T = 0; T < N; ++T)
    for (int Head = 0; Head < H; ++Head) {
      PrefixLse[Head][T] = T == 1 ? -INFINITY : 1.0f;
      SuffixLse[Head][T] = 1.0f;
      for (int I = 0; I < D; ++I) {
        Prefix[T][Head][I] = T == 0 ? 2.0f : NAN;
        Suffix[T][Head][I] = 4.0f;
      }
    }

  check(mlafix_unit_load_file(Argv[1], NULL, &Unit), "load");
  check(mlafix_unit_find_kernel(Unit, "merge_attn_states", "H=16,D=128,T=f32",
                                &Merge),
        "find_kernel");
  P = tensor(Prefix, 3, RowSizes);
  S = tensor(Suffix, 3, RowSizes);
  PLse = tensor(PrefixLse, 2, LseSizes);
  SLse = tensor(SuffixLse, 2, LseSizes);
  Args[0] = argument(&P); /* out: over the prefix */
  Args[1] = argument(&PLse);
  Args[2] = argument(&P);
  Args[3] = argument(&PLse);
  Args[4] = argument(&S);
  Args[5] = argument(&SLse);
  Args[6].struct_size = sizeof(mlafix_arg);
  Args[6].kind = MLAFIX_ARG_I64; /* context_rows */
  Args[6].value.i64 = 2;
  check(mlafix_launch(Merge, Args, 7, Cpu, NULL, 0), "launch");
  printf("rows of 2.0, empty, past the threshold, merged with rows of 4.0: "
         "%.1f %.1f %.1f\n",
         Prefix[0][0][0], Prefix[1][H - 1][D - 1], Prefix[2][0][0]);
  if (Prefix[0][0][0] != 3.0f || Prefix[1][H - 1][D - 1] != 4.0f ||
      Prefix[2][0][0] != 4.0f)
    return 1;

  /* A wrong call launches nothing and says what is wrong. */
  Short = tensor(Suffix, 3, ShortSizes);
  Args[4] = argument(&Short);
  if (mlafix_launch(Merge, Args, 7, Cpu, NULL, 0) != MLAFIX_INVALID_ARGUMENT)
    return 1;
  printf("with one row missing: %s\n", mlafix_last_error());
  mlafix_unit_destroy(Unit);
  return 0;
}
