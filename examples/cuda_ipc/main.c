/*===- main.c - two processes merge partial states over CUDA IPC ----------===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Each of two processes has a GPU, with a partial state of all heads in the  *|
|* GPU's memory. One launch on each GPU reads both states of half of the      *|
|* heads over NVLink or PCIe, merges them and writes the result. The          *|
|* processes only exchange handles of their memory, once. Usage:              *|
|*                                                                            *|
|*   cuda_ipc               two processes, two GPUs                           *|
|*   cuda_ipc --device=cpu  the same merge in one process, which has both     *|
|*                          states, on the CPU                                *|
|*                                                                            *|
|* The build compiles merge_ranks.mlir, embeds the unit in this program and   *|
|* writes merge_ranks.h (mlafix_add_unit in examples/CMakeLists.txt).         *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "Driver.h"
#include "merge_ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { Ranks = 2, N = 33, H = 8, Own = H / Ranks, D = 128, Rounds = 3 };

/* The memory that a rank shares: the flags of the group, and a partial state of
   all heads. */
struct Shared {
  char Workspace[MLAFIX_GROUP_BYTES]; /* aligned to 128 bytes */
  float Rows[N][H][D];
  float Lses[N][H];
};
/* The merged rows of the heads that one rank owns. */
struct Result {
  float Out[N][Own][D];
  float OutLse[N][Own];
};

static void check(mlafix_status Status) {
  if (Status == MLAFIX_OK)
    return;
  fprintf(stderr, "cuda_ipc: %s: %s\n", mlafix_status_name(Status),
          mlafix_last_error());
  exit(1);
}

/* The elements of rank 0 are `Round`, with weight 1. Those of rank 1 are
   4 + `Round`, with weight 2. Every fifth row of rank 1 is empty, and its
   payload is NaN. */
static void fill(struct Shared *State, int Rank, int Round) {
  for (int T = 0; T < N; ++T)
    for (int Head = 0; Head < H; ++Head) {
      int Empty = Rank == 1 && T % 5 == 0;
      State->Lses[T][Head] = Empty ? -INFINITY : Rank ? 0.69314718f : 0.0f;
      for (int I = 0; I < D; ++I)
        State->Rows[T][Head][I] = Empty ? NAN : (float)(4 * Rank + Round);
    }
}

static int countWrong(const struct Result *Result, int Round) {
  int Wrong = 0;
  for (int T = 0; T < N; ++T)
    for (int Head = 0; Head < Own; ++Head) {
      double Value = T % 5 ? 8.0 / 3.0 + Round : Round;
      double Lse = T % 5 ? log(3.0) : 0.0;
      Wrong += !(fabs(Result->OutLse[T][Head] - Lse) < 1e-5);
      for (int I = 0; I < D; ++I)
        Wrong += !(fabs(Result->Out[T][Head][I] - Value) < 1e-5);
    }
  return Wrong;
}

/* Merges the states of all ranks for the heads that `Rank` owns. */
static void merge(struct Shared *const *States, struct Result *Result, int Rank,
                  mlafix_device Device, const mlafix_group *Group) {
  const int64_t Sizes[] = {N, Own, D};
  const int64_t RowStrides[] = {H * D, D, 1}, LseStrides[] = {H, 1};
  mlafix_tensor Out =
      mlafix_contiguous(Result->Out, MLAFIX_F32, 3, Sizes, Device);
  mlafix_tensor OutLse =
      mlafix_contiguous(Result->OutLse, MLAFIX_F32, 2, Sizes, Device);
  mlafix_tensor Rows = Out, Lses = OutLse; /* their addresses are ignored */
  void *RowsOf[Ranks], *LsesOf[Ranks];
  mlafix_peers AllRows = MLAFIX_PEERS_INIT, AllLses = MLAFIX_PEERS_INIT;
  for (int R = 0; R < Ranks; ++R) {
    RowsOf[R] = States[R]->Rows[0][Rank * Own];
    LsesOf[R] = &States[R]->Lses[0][Rank * Own];
  }
  Rows.strides = RowStrides;
  Lses.strides = LseStrides;
  AllRows.ranks = AllLses.ranks = Ranks;
  AllRows.data = RowsOf;
  AllLses.data = LsesOf;
  AllRows.each = &Rows;
  AllLses.each = &Lses;
  AllRows.group = AllLses.group = Group;
  check(merge_ranks(&Out, &OutLse, &AllRows, &AllLses, Device, NULL, 0));
}

static int runOnCpu(void) {
  static struct Shared Memory[Ranks];
  static struct Result Result;
  struct Shared *States[Ranks] = {&Memory[0], &Memory[1]};
  const mlafix_device Cpu = {MLAFIX_CPU, 0};
  int Wrong = 0;
  for (int Round = 0; Round < Rounds; ++Round)
    for (int Rank = 0; Rank < Ranks; ++Rank) {
      fill(&Memory[0], 0, Round);
      fill(&Memory[1], 1, Round);
      merge(States, &Result, Rank, Cpu, NULL);
      Wrong += countWrong(&Result, Round);
    }
  printf("cuda_ipc: cpu: %d wrong values\n", Wrong);
  return Wrong != 0;
}

/* Sends `Mine` to the other process and receives as many bytes from it. */
static void exchange(int Socket, const void *Mine, void *Theirs, size_t Bytes) {
  if (write(Socket, Mine, Bytes) == (ssize_t)Bytes &&
      recv(Socket, Theirs, Bytes, MSG_WAITALL) == (ssize_t)Bytes)
    return;
  fprintf(stderr, "cuda_ipc: the other process has ended\n");
  exit(1);
}

/* Allocates memory that the other process may address. It has whole pages of
   2 MB: the driver shares whole pages, and smaller allocations would be in a
   page with other memory. */
static CUdeviceptr allocateShared(const struct Driver *Cuda) {
  const size_t Page = (size_t)2 << 20;
  CUdeviceptr Own;
  CHECK(Cuda->MemAlloc(&Own, (sizeof(struct Shared) + Page - 1) & ~(Page - 1)));
  /* The flags must be zero before another rank can see them. */
  CHECK(Cuda->MemsetD8(Own, 0, sizeof(struct Shared)));
  CHECK(Cuda->CtxSynchronize());
  return Own;
}

static int runRank(int Rank, int Socket) {
  static struct Shared State;
  static struct Result Result;
  const mlafix_device Device = {MLAFIX_CUDA, Rank};
  const struct Driver *Cuda = openDriver(Rank, Ranks);
  CUipcMemHandle Mine, Theirs;
  CUdeviceptr Own = allocateShared(Cuda), Other, DeviceResult;
  mlafix_group Group = MLAFIX_GROUP_INIT;
  void *Failure;
  char Done = 0;
  int Wrong = 0;

  CHECK(Cuda->IpcGetMemHandle(&Mine, Own));
  exchange(Socket, &Mine, &Theirs, sizeof(Mine));
  CHECK(Cuda->IpcOpenMemHandle(&Other, Theirs, IPC_ENABLE_PEER_ACCESS));
  CHECK(Cuda->MemAlloc(&DeviceResult, sizeof(Result)));
  CHECK(Cuda->MemHostAlloc(&Failure, sizeof(uint64_t), 0));
  memset(Failure, 0, sizeof(uint64_t));
  struct Shared *States[Ranks];
  States[Rank] = (struct Shared *)(uintptr_t)Own;
  States[1 - Rank] = (struct Shared *)(uintptr_t)Other;
  void *Workspaces[Ranks] = {States[0]->Workspace, States[1]->Workspace};
  Group.ranks = Ranks;
  Group.rank = (uint32_t)Rank;
  Group.workspaces = Workspaces;
  Group.failure = Failure;

  /* A rank may write its memory again as soon as its launch is complete,
     because the launch waits for the ranks that read it. */
  for (int Round = 0; Round < Rounds; ++Round) {
    fill(&State, Rank, Round);
    CHECK(Cuda->MemcpyHtoD(Own + offsetof(struct Shared, Rows), &State.Rows,
                           sizeof(State) - offsetof(struct Shared, Rows)));
    merge(States, (struct Result *)(uintptr_t)DeviceResult, Rank, Device,
          &Group);
    CHECK(Cuda->CtxSynchronize());
    check(mlafix_group_check(&Group));
    CHECK(Cuda->MemcpyDtoH(&Result, DeviceResult, sizeof(Result)));
    Wrong += countWrong(&Result, Round);
  }
  printf("cuda_ipc: rank %d on cuda:%d: %d wrong values\n", Rank, Rank, Wrong);
  /* A rank must close the other rank's memory before that rank frees it. */
  CHECK(Cuda->IpcCloseMemHandle(Other));
  exchange(Socket, &Done, &Done, sizeof(Done));
  CHECK(Cuda->MemFree(Own));
  return Wrong != 0;
}

int main(int Argc, char **Argv) {
  int Sockets[2], Status = 0;
  pid_t Child;
  if (Argc == 2 && strcmp(Argv[1], "--device=cpu") == 0)
    return runOnCpu();
  if (Argc != 1) {
    fprintf(stderr, "usage: cuda_ipc [--device=cpu]\n");
    return 2;
  }
  /* The driver is first used after the fork, because it does not survive one.
   */
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, Sockets) || (Child = fork()) < 0) {
    perror("cuda_ipc");
    return 1;
  }
  if (Child == 0) {
    close(Sockets[0]);
    return runRank(1, Sockets[1]);
  }
  close(Sockets[1]);
  Status = runRank(0, Sockets[0]);
  int Other = 1;
  if (waitpid(Child, &Other, 0) != Child || Other != 0)
    Status = 1;
  return Status;
}
