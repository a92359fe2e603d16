//===- runtime.hpp - C++ wrapper of the mlafix runtime ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Header-only C++17 over runtime.h: ownership by scope, errors as exceptions.
//
//   auto unit = mlafix::Unit::load("merge.mlafix");
//   auto merge = unit.kernel("merge_attn_states", "D=128,T=bf16");
//   merge.launch({mlafix::Tensor::contiguous(out, MLAFIX_BF16, {n, 128, 128}),
//                 ..., contextRows}, mlafix::cuda(0), stream);
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_HPP
#define MLAFIX_RUNTIME_HPP

#include "runtime.h"

#include <array>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace mlafix {

/// A failed call of the runtime: status and message.
class Error : public std::runtime_error {
public:
  Error(mlafix_status status, const std::string &message)
      : std::runtime_error(message), statusValue(status) {}
  mlafix_status status() const noexcept { return statusValue; }

private:
  mlafix_status statusValue;
};

/// Throws Error with the thread's last message unless `status` is MLAFIX_OK.
inline void check(mlafix_status status) {
  if (status != MLAFIX_OK)
    throw Error(status, mlafix_last_error());
}

inline mlafix_device cpu() noexcept { return {MLAFIX_CPU, 0}; }
inline mlafix_device cuda(int32_t ordinal) noexcept {
  return {MLAFIX_CUDA, ordinal};
}

/// Number of CUDA devices; 0 without a driver.
inline int32_t cudaDeviceCount() noexcept {
  int32_t count = 0;
  return mlafix_cuda_device_count(&count) == MLAFIX_OK ? count : 0;
}

/// A view of memory that it does not own. Sizes and strides count elements;
/// strides of f4e2m1, two of which share a byte, count bytes
/// (mlafix/runtime/tensor.h).
class Tensor {
public:
  /// An omitted optional argument.
  static Tensor none() { return Tensor(); }

  /// A row-major, contiguous tensor.
  static Tensor contiguous(const void *data, mlafix_dtype dtype,
                           const std::vector<int64_t> &sizes,
                           mlafix_device device = cpu()) {
    // The runtime knows the row length in bytes of each dtype.
    Tensor tensor = strided(data, dtype, sizes, sizes, device);
    tensor.hasStrides = false;
    return tensor;
  }

  static Tensor strided(const void *data, mlafix_dtype dtype,
                        const std::vector<int64_t> &sizes,
                        const std::vector<int64_t> &strides,
                        mlafix_device device = cpu()) {
    if (sizes.size() != strides.size() || sizes.size() > MLAFIX_MAX_DIMS)
      throw Error(MLAFIX_INVALID_ARGUMENT,
                  "expected at most " + std::to_string(MLAFIX_MAX_DIMS) +
                      " sizes and as many strides, got " +
                      std::to_string(sizes.size()) + " sizes and " +
                      std::to_string(strides.size()) + " strides");
    Tensor tensor;
    tensor.present = true;
    tensor.data = const_cast<void *>(data);
    tensor.dtype = dtype;
    tensor.device = device;
    tensor.ndim = static_cast<uint32_t>(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      tensor.sizes[i] = sizes[i];
      tensor.strides[i] = strides[i];
    }
    return tensor;
  }

  bool isPresent() const noexcept { return present; }

  /// The C view; valid while this object neither moves nor changes.
  mlafix_tensor view() const noexcept {
    mlafix_tensor out = MLAFIX_TENSOR_INIT;
    out.dtype = dtype;
    out.ndim = ndim;
    out.device = device;
    out.data = data;
    out.sizes = sizes.data();
    out.strides = hasStrides ? strides.data() : nullptr;
    return out;
  }

private:
  Tensor() = default;
  bool present = false;
  bool hasStrides = true;
  int32_t dtype = 0;
  uint32_t ndim = 0;
  mlafix_device device = {MLAFIX_CPU, 0};
  void *data = nullptr;
  std::array<int64_t, MLAFIX_MAX_DIMS> sizes{};
  std::array<int64_t, MLAFIX_MAX_DIMS> strides{};
};

/// An argument: a Tensor, an integer, a float or a bool. An integer is passed
/// as i32 if the kernel takes one and it fits, else as i64; Error if it fits
/// neither.
class Arg {
public:
  Arg(const Tensor &value) : kind(MLAFIX_ARG_TENSOR), tensor(value) {}
  /// One tensor per rank. `tensors` is not copied.
  Arg(const mlafix_peers &tensors) : kind(MLAFIX_ARG_PEERS), peers(&tensors) {}
  /// A list of tensors. `tensors` is not copied; its group is ignored.
  static Arg list(const mlafix_peers &tensors) {
    Arg made(tensors);
    made.kind = MLAFIX_ARG_LIST;
    return made;
  }
  // Prevents implicit conversion of pointers to bool.
  template <typename T,
            std::enable_if_t<std::is_same<T, bool>::value, bool> = true>
  Arg(T value) : kind(MLAFIX_ARG_BOOL) {
    integer = value;
  }
  Arg(float value) : kind(MLAFIX_ARG_F32) { real = value; }
  Arg(double value) : kind(MLAFIX_ARG_F32) { real = static_cast<float>(value); }
  template <typename T,
            typename = std::enable_if_t<std::is_integral<T>::value &&
                                        !std::is_same<T, bool>::value>>
  Arg(T value) : kind(MLAFIX_ARG_I64) {
    integer = static_cast<int64_t>(value);
    if (value > 0 && integer < 0)
      throw Error(MLAFIX_INVALID_ARGUMENT,
                  "expected an integer that an i64 holds, got " +
                      std::to_string(value));
  }

  /// The C argument for a parameter of kind `wanted`; `storage` keeps the view.
  mlafix_arg pack(int32_t wanted, mlafix_tensor &storage) const noexcept {
    mlafix_arg out{};
    out.struct_size = sizeof(out);
    out.kind = kind;
    switch (kind) {
    case MLAFIX_ARG_TENSOR:
      storage = tensor.view();
      out.value.tensor = tensor.isPresent() ? &storage : nullptr;
      break;
    case MLAFIX_ARG_PEERS:
    case MLAFIX_ARG_LIST:
      out.value.peers = peers;
      break;
    case MLAFIX_ARG_F32:
      out.value.f32 = real;
      break;
    case MLAFIX_ARG_BOOL:
      out.value.boolean = static_cast<uint8_t>(integer);
      break;
    default:
      out.value.i64 = integer;
      if (wanted == MLAFIX_ARG_I32 &&
          integer == static_cast<int32_t>(integer)) {
        out.kind = MLAFIX_ARG_I32;
        out.value.i32 = static_cast<int32_t>(integer);
      }
    }
    return out;
  }

private:
  int32_t kind;
  Tensor tensor = Tensor::none();
  const mlafix_peers *peers = nullptr;
  int64_t integer = 0;
  float real = 0;
};

namespace detail {
struct UnitDeleter {
  void operator()(mlafix_unit *unit) const noexcept {
    mlafix_unit_destroy(unit);
  }
};
struct BoundDeleter {
  void operator()(mlafix_bound *bound) const noexcept {
    mlafix_bound_destroy(bound);
  }
};

/// The C arguments of one call, on the stack.
class PackedArgs {
public:
  PackedArgs(const mlafix_kernel *kernel, const Arg *args, size_t given)
      : count(static_cast<uint32_t>(given)) {
    if (given > MLAFIX_MAX_ARGS)
      throw Error(MLAFIX_INVALID_ARGUMENT,
                  "expected at most " + std::to_string(MLAFIX_MAX_ARGS) +
                      " arguments, got " + std::to_string(given));
    for (size_t i = 0; i < given; ++i) {
      mlafix_arg_info info = MLAFIX_ARG_INFO_INIT;
      // Extra arguments: the launch reports how many it expected.
      if (i < mlafix_kernel_num_args(kernel))
        check(mlafix_kernel_arg_info(kernel, static_cast<uint32_t>(i), &info));
      values[i] = args[i].pack(info.kind, views[i]);
    }
  }
  const mlafix_arg *data() const noexcept { return values; }
  uint32_t size() const noexcept { return count; }

private:
  uint32_t count;
  mlafix_arg values[MLAFIX_MAX_ARGS];
  mlafix_tensor views[MLAFIX_MAX_ARGS];
};
} // namespace detail

/// A kernel with checked arguments, to launch many times. Keeps its unit alive.
class Bound {
public:
  /// Owns `bound`, whose unit outlives this object.
  static Bound adopt(mlafix_bound *bound) noexcept {
    return Bound(nullptr, bound);
  }
  /// Sets new data pointers, one per argument (entries of scalars are ignored).
  void setPointers(const std::vector<void *> &pointers) {
    check(mlafix_bound_set_pointers(handle.get(), pointers.data(),
                                    static_cast<uint32_t>(pointers.size())));
  }
  /// `stream`: a CUstream or cudaStream_t; nullptr on the CPU.
  void launch(void *stream = nullptr, uint32_t flags = 0) const {
    check(mlafix_bound_launch(handle.get(), stream, flags));
  }
  /// Function, packed parameters and geometry, for graphs built by hand.
  mlafix_launch_info info() const {
    mlafix_launch_info out = MLAFIX_LAUNCH_INFO_INIT;
    check(mlafix_bound_launch_info(handle.get(), &out));
    return out;
  }
  /// A code version considered for the call, and why it was refused. `refused`
  /// stays valid until the thread asks again.
  mlafix_variant_info variant(uint32_t index) const {
    mlafix_variant_info out = MLAFIX_VARIANT_INFO_INIT;
    check(mlafix_bound_variant_info(handle.get(), index, &out));
    return out;
  }
  mlafix_bound *get() const noexcept { return handle.get(); }

private:
  friend class Kernel;
  Bound(std::shared_ptr<mlafix_unit> owner, mlafix_bound *bound)
      : unit(std::move(owner)), handle(bound) {}
  std::shared_ptr<mlafix_unit> unit; // destroyed after the handle
  std::unique_ptr<mlafix_bound, detail::BoundDeleter> handle;
};

/// One kernel of a unit; keeps the unit alive.
class Kernel {
public:
  const char *name() const noexcept { return mlafix_kernel_name(handle); }
  const char *bindings() const noexcept {
    return mlafix_kernel_bindings(handle);
  }
  uint32_t numArgs() const noexcept { return mlafix_kernel_num_args(handle); }
  mlafix_arg_info arg(uint32_t index) const {
    mlafix_arg_info info = MLAFIX_ARG_INFO_INIT;
    check(mlafix_kernel_arg_info(handle, index, &info));
    return info;
  }
  /// The compiler's proofs about the kernel (docs/Proofs.md).
  std::vector<mlafix_proof_info> proofs() const {
    std::vector<mlafix_proof_info> all(mlafix_kernel_num_proofs(handle),
                                       MLAFIX_PROOF_INFO_INIT);
    for (size_t i = 0; i < all.size(); ++i)
      check(mlafix_kernel_proof(handle, static_cast<uint32_t>(i), &all[i]));
    return all;
  }
  /// The code that runs on `device`; prepares the unit there.
  mlafix_code_info code(mlafix_device device) const {
    mlafix_code_info info = MLAFIX_CODE_INFO_INIT;
    check(mlafix_kernel_code_info(handle, device, &info));
    return info;
  }

  void launch(std::initializer_list<Arg> args, mlafix_device device = cpu(),
              void *stream = nullptr, uint32_t flags = 0) const {
    launch(args.begin(), args.size(), device, stream, flags);
  }
  void launch(const std::vector<Arg> &args, mlafix_device device = cpu(),
              void *stream = nullptr, uint32_t flags = 0) const {
    launch(args.data(), args.size(), device, stream, flags);
  }
  /// Makes only the checks of launch, and throws what it would throw.
  void validate(const std::vector<Arg> &args, mlafix_device device = cpu(),
                uint32_t flags = 0) const {
    detail::PackedArgs packed(handle, args.data(), args.size());
    check(mlafix_validate(handle, packed.data(), packed.size(), device, flags));
  }
  Bound bind(const std::vector<Arg> &args, mlafix_device device = cpu(),
             uint32_t flags = 0) const {
    detail::PackedArgs packed(handle, args.data(), args.size());
    mlafix_bound *bound = nullptr;
    check(mlafix_bind(handle, packed.data(), packed.size(), device, flags,
                      &bound));
    return Bound(unit, bound);
  }
  const mlafix_kernel *get() const noexcept { return handle; }

private:
  friend class Unit;
  Kernel(std::shared_ptr<mlafix_unit> owner, const mlafix_kernel *kernel)
      : unit(std::move(owner)), handle(kernel) {}
  void launch(const Arg *args, size_t count, mlafix_device device, void *stream,
              uint32_t flags) const {
    detail::PackedArgs packed(handle, args, count);
    check(mlafix_launch(handle, packed.data(), packed.size(), device, stream,
                        flags));
  }
  std::shared_ptr<mlafix_unit> unit;
  const mlafix_kernel *handle;
};

/// A loaded unit.
class Unit {
public:
  static Unit load(const std::string &path,
                   const mlafix_load_options *options = nullptr) {
    mlafix_unit *unit = nullptr;
    check(mlafix_unit_load_file(path.c_str(), options, &unit));
    return Unit(unit);
  }
  /// Loads from memory; the bytes are copied.
  static Unit load(const void *bytes, size_t size,
                   const mlafix_load_options *options = nullptr) {
    mlafix_unit *unit = nullptr;
    check(mlafix_unit_load_memory(bytes, size, options, &unit));
    return Unit(unit);
  }

  /// The kernel with that name; `bindings` ("D=128,T=bf16") select a
  /// specialisation.
  Kernel kernel(const std::string &name,
                const std::string &bindings = "") const {
    const mlafix_kernel *kernel = nullptr;
    check(mlafix_unit_find_kernel(handle.get(), name.c_str(), bindings.c_str(),
                                  &kernel));
    return Kernel(handle, kernel);
  }
  std::vector<Kernel> kernels() const {
    std::vector<Kernel> all;
    for (uint32_t i = 0; i < mlafix_unit_num_kernels(handle.get()); ++i)
      all.push_back(Kernel(handle, mlafix_unit_kernel_at(handle.get(), i)));
    return all;
  }
  const char *producer() const noexcept {
    return mlafix_unit_producer(handle.get());
  }
  void prepare(mlafix_device device) const {
    check(mlafix_unit_prepare(handle.get(), device));
  }
  mlafix_unit *get() const noexcept { return handle.get(); }

private:
  explicit Unit(mlafix_unit *unit) : handle(unit, detail::UnitDeleter()) {}
  std::shared_ptr<mlafix_unit> handle;
};

} // namespace mlafix

#endif // MLAFIX_RUNTIME_HPP
