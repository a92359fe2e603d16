/*===- driver_launch.c - a cubin and nothing but the CUDA driver ----------===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* For hosts that bring their own launcher: the cubin of                      *|
|*                                                                            *|
|*   mlafix-opt kernels/merge_attn_states.mlir --target=sm_90 --emit=cubin    *|
|*       --specialize=H=16,D=128,T=bf16 -o merge.cubin                        *|
|*                                                                            *|
|* through cuModuleLoadData and cuLaunchKernel. Usage:                        *|
|*                                                                            *|
|*   driver_launch merge.cubin ENTRY ROWS_PER_BLOCK THREADS                   *|
|*                                                                            *|
|* docs/UnitFormat.md describes the kernel ABI: the kernel has one parameter  *|
|* per element of the variant's `params`. For this kernel's first variant:    *|
|*                                                                            *|
|*   out          pointer, size of dim 0 (n)                                  *|
|*   out_lse      pointer (may be null)                                       *|
|*   prefix       pointer                                                     *|
|*   prefix_lse   pointer, lines (0 is valid), strides (those of every lse)   *|
|*   suffix       pointer                                                     *|
|*   suffix_lse   pointer                                                     *|
|*   context_rows i64                                                         *|
|*   local        i32: 1 if all inputs are memory of this device, else 0      *|
|*                                                                            *|
|* Pointers, lines, sizes and strides (in elements) have 8 bytes, `local` has *|
|* 4. `local` decides whether rows are prefetched; it changes no result. Rows *|
|* are (token, head) pairs. The grid has ceil(n * H / ROWS_PER_BLOCK) blocks  *|
|* of THREADS threads. The manifest of a unit has ENTRY, ROWS_PER_BLOCK and   *|
|* THREADS of each variant; a host that uses the runtime does not need them.  *|
|* This host must obey the guards of the variant. For the first variant:      *|
|* every pointer is a multiple of 16 bytes, rows are contiguous, and all lses *|
|* have the same strides.                                                     *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The declarations of cuda.h that this program needs. */
typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef unsigned long long CUdeviceptr;

static CUresult (*cuInit)(unsigned);
static CUresult (*cuDeviceGet)(CUdevice *, int);
static CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *, CUdevice);
static CUresult (*cuCtxSetCurrent)(CUcontext);
static CUresult (*cuCtxSynchronize)(void);
static CUresult (*cuGetErrorName)(CUresult, const char **);
static CUresult (*cuMemAlloc)(CUdeviceptr *, size_t);
static CUresult (*cuMemcpyHtoD)(CUdeviceptr, const void *, size_t);
static CUresult (*cuMemcpyDtoH)(void *, CUdeviceptr, size_t);
static CUresult (*cuModuleLoadData)(CUmodule *, const void *);
static CUresult (*cuModuleGetFunction)(CUfunction *, CUmodule, const char *);
static CUresult (*cuLaunchKernel)(CUfunction, unsigned, unsigned, unsigned,
                                  unsigned, unsigned, unsigned, unsigned,
                                  CUstream, void **, void **);

static void load(void *Library, const char *Name, void *Slot) {
  void *Address = dlsym(Library, Name);
  if (!Address) {
    fprintf(stderr, "driver_launch: libcuda has no %s\n", Name);
    exit(1);
  }
  memcpy(Slot, &Address, sizeof(Address));
}

static void check(CUresult Result, const char *Call) {
  const char *Name = "?";
  if (!Result)
    return;
  cuGetErrorName(Result, &Name);
  fprintf(stderr, "driver_launch: %s: %s\n", Call, Name);
  exit(1);
}
#define CHECK(CALL) check(CALL, #CALL)

enum { N = 100, H = 16, D = 128, ContextRows = 60 };

static void openDriver(void) {
  void *Library = dlopen("libcuda.so.1", RTLD_NOW);
  CUdevice Device;
  CUcontext Context;
  if (!Library) {
    fprintf(stderr, "driver_launch: expected a CUDA driver, got none\n");
    exit(1);
  }
  load(Library, "cuInit", &cuInit);
  load(Library, "cuDeviceGet", &cuDeviceGet);
  load(Library, "cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain);
  load(Library, "cuCtxSetCurrent", &cuCtxSetCurrent);
  load(Library, "cuCtxSynchronize", &cuCtxSynchronize);
  load(Library, "cuGetErrorName", &cuGetErrorName);
  load(Library, "cuMemAlloc_v2", &cuMemAlloc);
  load(Library, "cuMemcpyHtoD_v2", &cuMemcpyHtoD);
  load(Library, "cuMemcpyDtoH_v2", &cuMemcpyDtoH);
  load(Library, "cuModuleLoadData", &cuModuleLoadData);
  load(Library, "cuModuleGetFunction", &cuModuleGetFunction);
  load(Library, "cuLaunchKernel", &cuLaunchKernel);
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&Device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&Context, Device));
  CHECK(cuCtxSetCurrent(Context));
}

static char *readFile(const char *Path) {
  FILE *File = fopen(Path, "rb");
  char *Bytes;
  long Size;
  if (!File || fseek(File, 0, SEEK_END) || (Size = ftell(File)) < 0) {
    fprintf(stderr, "driver_launch: cannot read %s\n", Path);
    exit(1);
  }
  rewind(File);
  Bytes = malloc((size_t)Size + 1);
  if (!Bytes || fread(Bytes, 1, (size_t)Size, File) != (size_t)Size) {
    fprintf(stderr, "driver_launch: cannot read %s\n", Path);
    exit(1);
  }
  Bytes[Size] = 0; /* PTX instead of a cubin works, too */
  fclose(File);
  return Bytes;
}

static CUdeviceptr upload(const void *From, size_t Bytes) {
  CUdeviceptr To;
  CHECK(cuMemAlloc(&To, Bytes));
  CHECK(cuMemcpyHtoD(To, From, Bytes));
  return To;
}

int main(int Argc, char **Argv) {
  static uint16_t Prefix[N][H][D], Suffix[N][H][D], Out[N][H][D];
  static float PrefixLse[H][N], SuffixLse[H][N], OutLse[H][N];
  CUmodule Module;
  CUfunction Function;
  unsigned RowsPerBlock, Threads, Grid;
  int Wrong = 0;

  if (Argc != 5 || (RowsPerBlock = (unsigned)atoi(Argv[3])) < 1 ||
      (Threads = (unsigned)atoi(Argv[4])) < 1) {
    fprintf(stderr,
            "usage: driver_launch CUBIN ENTRY ROWS_PER_BLOCK THREADS\n");
    return 2;
  }
  openDriver();

  /* The prefix is 1.0 with weight 1, the suffix 4.0 with weight 2, so the
     result is 3.0. Every fifth row of the prefix is empty, with a payload of
     NaN; its result is 4.0, like that of rows past the threshold. */
  for (int T = 0; T < N; ++T)
    for (int Head = 0; Head < H; ++Head) {
      PrefixLse[Head][T] = T % 5 == 0 ? -INFINITY : 0.0f;
      SuffixLse[Head][T] = 0.69314718f;
      for (int I = 0; I < D; ++I) {
        Prefix[T][Head][I] = T % 5 == 0 ? 0x7fc0 : 0x3f80;
        Suffix[T][Head][I] = 0x4080;
      }
    }
  memset(Out, 0xff, sizeof(Out));
  memset(OutLse, 0xff, sizeof(OutLse));

  CHECK(cuModuleLoadData(&Module, readFile(Argv[1])));
  CHECK(cuModuleGetFunction(&Function, Module, Argv[2]));
  CUdeviceptr DOut = upload(Out, sizeof(Out));
  CUdeviceptr DOutLse = upload(OutLse, sizeof(OutLse));
  CUdeviceptr DPrefix = upload(Prefix, sizeof(Prefix));
  CUdeviceptr DPrefixLse = upload(PrefixLse, sizeof(PrefixLse));
  CUdeviceptr DSuffix = upload(Suffix, sizeof(Suffix));
  CUdeviceptr DSuffixLse = upload(SuffixLse, sizeof(SuffixLse));
  int64_t Rows = N, LseHead = N, LseToken = 1; /* strides of lse[h][t] */
  int64_t Context = ContextRows;
  int32_t Local = 1;
  int64_t Lines = 0;                    /* prefetches no cache lines */
  void *Params[] = {&DOut,       &Rows, /* out */
                    &DOutLse,           /* out_lse */
                    &DPrefix,           /* prefix */
                    &DPrefixLse, &Lines, &LseHead, &LseToken, /* prefix_lse */
                    &DSuffix,                                 /* suffix */
                    &DSuffixLse,                              /* suffix_lse */
                    &Context,                                 /* context_rows */
                    &Local};                                  /* local */
  Grid = (N * H + RowsPerBlock - 1) / RowsPerBlock;
  CHECK(cuLaunchKernel(Function, Grid, 1, 1, Threads, 1, 1, 0, NULL, Params,
                       NULL));
  CHECK(cuCtxSynchronize());
  CHECK(cuMemcpyDtoH(Out, DOut, sizeof(Out)));
  CHECK(cuMemcpyDtoH(OutLse, DOutLse, sizeof(OutLse)));

  for (int T = 0; T < N; ++T)
    for (int Head = 0; Head < H; ++Head) {
      int Live = T % 5 != 0 && T < ContextRows;
      double Lse = Live ? log(3.0) : log(2.0);
      Wrong += !(fabs(OutLse[Head][T] - Lse) < 1e-5);
      for (int I = 0; I < D; ++I)
        Wrong += Out[T][Head][I] != (Live ? 0x4040 : 0x4080);
    }
  printf("driver_launch: %s, %u blocks of %u threads: %d wrong values\n",
         Argv[2], Grid, Threads, Wrong);
  return Wrong != 0;
}
