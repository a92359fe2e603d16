//===- Streams.cpp - Foreign work on a program's streams ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Streams.h"

#include "Harness.h"
#include "examples/support/CudaDriver.h"

#include <iterator>
#include <stdexcept>

using namespace conformance;

namespace {

using CUdeviceptr = unsigned long long;

struct LaunchAttribute {
  int Id;
  char Pad[4];
  union {
    char Bytes[64];
    int Allowed;
  } Value;
};

struct LaunchConfig {
  unsigned GridX, GridY, GridZ, BlockX, BlockY, BlockZ, SharedBytes;
  void *Stream;
  LaunchAttribute *Attributes;
  unsigned NumAttributes;
};

constexpr unsigned BlockThreads = 256;

/// Returns the PTX of a foreign kernel with one thread per element.
std::string source(Foreign Kind) {
  bool Early = Kind == Foreign::EarlyTrigger;
  std::string Text =
      Early ? ".version 7.8\n.target sm_90\n" : ".version 7.0\n.target sm_75\n";
  Text += R"(.address_size 64
.visible .entry invert(.param .u64 to, .param .u64 from, .param .u32 count) {
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  .reg .b64 %d<6>;
)";
  // The kernel may start before the preceding grid has ended, so it waits for
  // that grid.
  if (Early)
    Text += "  griddepcontrol.wait;\n  griddepcontrol.launch_dependents;\n";
  Text += R"(  ld.param.u64 %d1, [to];
  ld.param.u64 %d2, [from];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 ret;
  mul.wide.u32 %d3, %r5, 4;
  add.s64 %d4, %d2, %d3;
  add.s64 %d5, %d1, %d3;
  ld.global.u32 %r6, [%d4];
  not.b32 %r7, %r6;
)";
  // Waits about 20 us before the store, longer than the launch of the next
  // kernel takes. A next kernel that does not wait then reads the old value.
  if (Early)
    Text += R"(  mov.u32 %r8, 20;
again:
  nanosleep.u32 1000;
  sub.u32 %r8, %r8, 1;
  setp.ne.u32 %p2, %r8, 0;
  @%p2 bra again;
)";
  return Text + "  st.global.u32 [%d5], %r7;\n  ret;\n}\n";
}

CUdeviceptr address(const void *Data) {
  return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(Data));
}

} // namespace

struct Streams::Driver {
#define MLAFIX_DRIVER_FUNCTIONS(X)                                             \
  X(cuDeviceGetAttribute, (int *, int, int))                                   \
  X(cuCtxGetDevice, (int *))                                                   \
  X(cuStreamCreate, (void **, unsigned))                                       \
  X(cuStreamDestroy_v2, (void *))                                              \
  X(cuStreamSynchronize, (void *))                                             \
  X(cuStreamWaitEvent, (void *, void *, unsigned))                             \
  X(cuEventCreate, (void **, unsigned))                                        \
  X(cuEventRecord, (void *, void *))                                           \
  X(cuEventDestroy_v2, (void *))                                               \
  X(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, void *))          \
  X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, void *))             \
  X(cuModuleLoadData, (void **, const void *))                                 \
  X(cuModuleUnload, (void *))                                                  \
  X(cuModuleGetFunction, (void **, void *, const char *))                      \
  X(cuLaunchKernelEx, (const LaunchConfig *, void *, void **, void **))
  MLAFIX_DRIVER_FUNCTIONS(SUPPORT_DRIVER_MEMBER)

  Driver() { MLAFIX_DRIVER_FUNCTIONS(SUPPORT_DRIVER_LOAD) }
};

#define CHECKED(CALL, ARGS)                                                    \
  do {                                                                         \
    if (int Result = Cuda->CALL ARGS)                                          \
      throw std::runtime_error(#CALL " failed: " + std::to_string(Result));    \
  } while (false)

Streams::Streams() : Cuda(std::make_unique<Driver>()) {
  device().synchronize(); // makes the device's context current
  int Device = 0, Major = 0, Minor = 0;
  CHECKED(cuCtxGetDevice, (&Device));
  CHECKED(cuDeviceGetAttribute, (&Major, 75, Device));
  CHECKED(cuDeviceGetAttribute, (&Minor, 76, Device));
  Capability = 10 * Major + Minor;
  // Flag 1 (CU_STREAM_NON_BLOCKING): the stream does not wait for the legacy
  // default stream.
  CHECKED(cuStreamCreate, (&Side, 1));
  for (void *&Event : Events)
    CHECKED(cuEventCreate, (&Event, 2)); // CU_EVENT_DISABLE_TIMING
  // Loads the kernels now, since loading is forbidden during a capture.
  for (Foreign Kind : {Foreign::Plain, Foreign::EarlyTrigger})
    if (Kind == Foreign::Plain || hasDependentLaunch())
      function(Kind);
}

Streams::~Streams() {
  for (void *Module : Modules)
    if (Module)
      Cuda->cuModuleUnload(Module);
  for (void *Event : Events)
    if (Event)
      Cuda->cuEventDestroy_v2(Event);
  if (Side)
    Cuda->cuStreamDestroy_v2(Side);
}

void *Streams::function(Foreign Kind) {
  int Index = static_cast<int>(Kind);
  if (!Functions[Index]) {
    CHECKED(cuModuleLoadData, (&Modules[Index], source(Kind).c_str()));
    CHECKED(cuModuleGetFunction, (&Functions[Index], Modules[Index], "invert"));
  }
  return Functions[Index];
}

void Streams::copy(void *To, const void *From, size_t Bytes, void *Stream) {
  CHECKED(cuMemcpyDtoDAsync_v2, (address(To), address(From), Bytes, Stream));
}

void Streams::fill(void *To, unsigned char Byte, size_t Bytes, void *Stream) {
  CHECKED(cuMemsetD8Async, (address(To), Byte, Bytes, Stream));
}

void Streams::invert(Foreign Kind, void *To, const void *From, size_t Bytes,
                     void *Stream, bool Attributed) {
  auto Count = static_cast<uint32_t>(Bytes / 4);
  void *Params[] = {&To, &From, &Count};
  LaunchAttribute Attribute = {};
  Attribute.Id = 6; // programmatic stream serialisation
  Attribute.Value.Allowed = 1;
  LaunchConfig Config = {(Count + BlockThreads - 1) / BlockThreads,
                         1,
                         1,
                         BlockThreads,
                         1,
                         1,
                         0,
                         Stream,
                         &Attribute,
                         Attributed ? 1u : 0u};
  CHECKED(cuLaunchKernelEx, (&Config, function(Kind), Params, nullptr));
}

void Streams::join(void *Behind, void *Waits) {
  void *Event = Events[NextEvent++ % std::size(Events)];
  CHECKED(cuEventRecord, (Event, Behind));
  CHECKED(cuStreamWaitEvent, (Waits, Event, 0));
}

void Streams::synchronize(void *Stream) {
  CHECKED(cuStreamSynchronize, (Stream));
}
