//===- CudaMachine.cpp - A GPU, its graphs and its events -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Machine.h"
#include "StreamPtx.h"

#include "cuda/Driver.h"

#include "mlafix/runtime.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

using namespace mlafix::bench;
using namespace mlafix::tools;
namespace cuda = mlafix::driver::cuda;

namespace {

CUdeviceptr address(const void *data) {
  return reinterpret_cast<uintptr_t>(data);
}

class Event {
public:
  Event() { cuEventCreate(&event, 0); }
  Event(const Event &) = delete;
  ~Event() { cuEventDestroy.call(event); }
  CUevent get() const { return event; }

private:
  CUevent event = nullptr;
};

class CudaReplay : public Replay {
public:
  CudaReplay(CUstream stream, const std::function<void()> &launches)
      : stream(stream) {
    CUgraph source = nullptr;
    cuStreamBeginCapture(stream, cuda::captureModeRelaxed);
    try {
      launches();
    } catch (...) {
      cuStreamEndCapture.call(stream, &source);
      throw;
    }
    cuStreamEndCapture(stream, &source);
    CUresult made = cuGraphInstantiateWithFlags.call(&executable, source, 0);
    cuGraphDestroy.call(source);
    if (made != cuda::success)
      throwError("cuGraphInstantiateWithFlags", made);
    cuGraphUpload(executable, stream);
  }
  ~CudaReplay() override { cuGraphExecDestroy.call(executable); }

  double time() override {
    cuEventRecord(begin.get(), stream);
    cuGraphLaunch(executable, stream);
    cuEventRecord(end.get(), stream);
    cuEventSynchronize(end.get());
    float milliseconds = 0;
    cuEventElapsedTime(&milliseconds, begin.get(), end.get());
    return 1e3 * milliseconds;
  }

private:
  CUstream stream;
  CUgraphExec executable = nullptr;
  Event begin, end;
};

class CudaMachine : public Machine {
public:
  explicit CudaMachine(int ordinal)
      : ordinal(ordinal), context(ordinal), handle(context.device()) {
    cuStreamCreate(&queue,
                   1); // 1: non-blocking, so it ignores the legacy stream
    streams = loadStreams(streamModule());
    cuLibraryGetKernel(&empty, streams, "empty");
  }

  mlafix_device device() const override { return {MLAFIX_CUDA, ordinal}; }
  std::string name() const override {
    char text[256] = "";
    cuDeviceGetName(text, sizeof(text), handle);
    int version = 0;
    cuDriverGetVersion(&version);
    return std::string(text) + ", driver for CUDA " +
           std::to_string(version / 1000) + "." +
           std::to_string(version % 1000 / 10);
  }
  int64_t cacheBytes() const override {
    int bytes = 0;
    cuDeviceGetAttribute(&bytes, cuda::attributeL2CacheSize, handle);
    return bytes;
  }
  int64_t freeBytes() const override {
    size_t free = 0, total = 0;
    cuMemGetInfo(&free, &total);
    return free;
  }

  void *allocate(int64_t bytes) override {
    CUdeviceptr data = 0;
    cuMemAlloc(&data, std::max<int64_t>(bytes, 1));
    return reinterpret_cast<void *>(static_cast<uintptr_t>(data));
  }
  void free(void *data) noexcept override {
    cuStreamSynchronize.call(queue);
    cuMemFree.call(address(data));
  }
  void upload(void *to, const void *from, int64_t bytes) override {
    synchronize();
    cuMemcpyHtoD(address(to), from, bytes);
    // A copy from pageable memory may return before it is complete, so wait.
    cuCtxSynchronize();
  }
  void download(void *to, const void *from, int64_t bytes) override {
    synchronize();
    cuMemcpyDtoH(to, address(from), bytes);
  }
  void copy(void *to, const void *from, int64_t bytes) override {
    cuMemcpyDtoDAsync(address(to), address(from), bytes, queue);
  }
  void fill(void *to, unsigned char byte, int64_t bytes) override {
    synchronize();
    cuMemsetD8(address(to), byte, bytes);
    cuCtxSynchronize();
  }
  void *stream() const override { return queue; }
  void synchronize() override { cuStreamSynchronize(queue); }
  std::unique_ptr<Replay> record(std::function<void()> launches) override {
    return std::make_unique<CudaReplay>(queue, launches);
  }

  StreamForms streamForms(int reads, bool isDependent) const override {
    StreamForms forms;
    for (StreamShape shape : streamShapes(reads))
      forms.shapes.push_back(std::to_string(shape.packs) + " x 16 bytes, " +
                             std::to_string(shape.threads) + " threads");
    if (isDependent)
      forms.schedules.clear();
    for (const StreamSchedule &schedule : streamSchedules(reads))
      if (isDependent)
        forms.schedules.push_back(toString(schedule));
    return forms;
  }
  void runStream(const Stream &stream, const StreamForm &form) override {
    StreamShape shape = streamShapes(stream.reads)[form.shape];
    uint64_t packs = stream.bytes / 16;
    int64_t perBlock = int64_t(shape.packs) * shape.threads;
    BaselineCall call = {nullptr,
                         uint32_t((packs + perBlock - 1) / perBlock),
                         1,
                         uint32_t(shape.threads),
                         form.isDependent,
                         {address(stream.from), address(stream.to),
                          uint64_t(stream.bytes), packs}};
    if (form.isDependent) {
      StreamSchedule schedule = streamSchedules(stream.reads)[form.schedule];
      call.function = dependentKernel(stream.reads, shape.packs, schedule);
      call.params.push_back(
          prefetchedPacks(schedule, stream.reads, shape.packs));
    } else {
      call.function =
          streamKernel(streams, streamEntry(stream.reads, shape.packs));
    }
    launchBaseline(call);
  }
  bool hasDependentLaunch() const override {
    int major = 0;
    cuDeviceGetAttribute(&major, cuda::attributeComputeCapabilityMajor, handle);
    return major >= 9;
  }
  bool hasEmptyLaunch() const override { return true; }
  void launchEmpty() override { launchBaseline({empty, 1, 1, 32, false, {}}); }

  void loadBaselines(const std::string &path) override {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    if (!file)
      throw std::runtime_error("--rivals: expected a file, cannot read \"" +
                               path + "\"");
    baselineImage = bytes.str();
    CUresult result =
        cuLibraryLoadData.call(&baselines, baselineImage.c_str(), nullptr,
                               nullptr, 0, nullptr, nullptr, 0);
    if (result == cuda::success)
      return;
    throw std::runtime_error(
        "--rivals: expected a cubin, fatbin or PTX file "
        "for this device, got \"" +
        path + "\": " + describeError("cuLibraryLoadData", result));
  }
  void *findBaseline(const std::string &name) override {
    CUkernel kernel = nullptr;
    if (!baselines || cuLibraryGetKernel.call(&kernel, baselines, name.c_str()))
      return nullptr;
    return kernel;
  }
  void launchBaseline(const BaselineCall &call) override {
    void *params[MLAFIX_MAX_PARAMS];
    for (size_t i = 0; i < call.params.size(); ++i)
      params[i] = const_cast<uint64_t *>(&call.params[i]);
    CUlaunchAttribute attribute = {};
    attribute.id = cuda::attributeProgrammaticStreamSerialization;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config = {call.gridX, call.gridY,
                             1,          call.threads,
                             1,          1,
                             0,          queue,
                             &attribute, call.isDependent ? 1u : 0u};
    cuLaunchKernelEx(&config, static_cast<CUfunction>(call.function), params,
                     nullptr);
  }

private:
  /// Loads a module of stream kernels. The driver compiles all kernels of a
  /// module, so callers pass a module with only the kernels that they need.
  CUlibrary loadStreams(const std::string &text) {
    CUlibrary library = nullptr;
    cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr,
                      nullptr, 0);
    return library;
  }
  void *streamKernel(CUlibrary library, const std::string &entry) {
    CUkernel &kernel = streamKernels[entry];
    if (!kernel)
      cuLibraryGetKernel(&kernel, library, entry.c_str());
    return kernel;
  }
  void *dependentKernel(int reads, int packs, const StreamSchedule &schedule) {
    CUlibrary &library = dependentStreams[reads];
    if (!library)
      library = loadStreams(dependentStreamModule(reads, reads));
    return streamKernel(library,
                        dependentStreamEntry(reads, packs, schedule.trigger));
  }

  int ordinal;
  PrimaryContext context;
  CUdevice handle;
  CUstream queue = nullptr;
  CUlibrary streams = nullptr, baselines = nullptr;
  CUkernel empty = nullptr;
  std::string baselineImage;
  std::map<int, CUlibrary> dependentStreams; ///< key: number of streams read
  std::map<std::string, CUkernel> streamKernels;
};

} // namespace

std::unique_ptr<Machine> mlafix::bench::openCudaMachine(int ordinal) {
  return std::make_unique<CudaMachine>(ordinal);
}
