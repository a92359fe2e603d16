// Calls scale_rows from the typed header on the first CUDA device, on a new
// stream. If there is no device, prints that. Needs no header and no library of
// CUDA.
#include "scale.h"

#include <cstdio>
#include <stdexcept>

template <typename... Args>
static void call(const char *name, int version, Args... args) {
  mlafix_cuda_entry entry = nullptr;
  mlafix::check(mlafix_cuda_function(name, version, &entry));
  if (reinterpret_cast<int (*)(Args...)>(entry)(args...) != 0)
    throw std::runtime_error(name);
}

int main() {
  if (mlafix::cudaDeviceCount() == 0) {
    std::printf("no CUDA device\n");
    return 0;
  }
  void *context = nullptr, *stream = nullptr;
  unsigned long long memory = 0; // managed: the host can access it, too
  call("cuDevicePrimaryCtxRetain", 7000, &context, 0);
  call("cuCtxSetCurrent", 4000, context);
  call("cuStreamCreate", 2000, &stream, 1u);
  call("cuMemAllocManaged", 6000, &memory, size_t(96), 1u);
  float *x = reinterpret_cast<float *>(memory), *y = x + 12;
  for (int i = 0; i < 12; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = -1.0f;
  }
  scale_rows({y, {3, 4}}, {x, {3, 4}}, mlafix::cuda(0), stream,
             MLAFIX_LAUNCH_DEEP_CHECKS);
  call("cuStreamSynchronize", 2000, stream);
  int right = 0;
  for (int i = 0; i < 12; ++i) {
    float expected = 2.0f * static_cast<float>(i);
    right += y[i] == expected;
    if (y[i] != expected)
      std::printf("y[%d]: expected %g, got %g\n", i, expected, y[i]);
  }
  std::printf("%d of 12 elements are right\n", right);
  return right == 12 ? 0 : 1;
}
