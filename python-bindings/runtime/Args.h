//===- Args.h - The arguments of one call -----------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_ARGS_H
#define MLAFIX_PYTHON_ARGS_H

#include "Peers.h"
#include "Signature.h"
#include "Tensor.h"

namespace mlafix::python {

/// Flags of the Python bindings, in addition to mlafix_launch_flags.
/// `runtimeFlags` masks the flags that the runtime knows.
enum : uint32_t {
  /// Accept tensors that require grad, since autograd has handled the call
  /// already.
  flagIgnoreGrad = 1u << 16,
  runtimeFlags = 0xffff
};

/// Returns the names and descriptions of an argument for messages.
inline ArgContext contextOf(const Signature &signature, const ArgSpec &spec) {
  return {signature.name.c_str(), spec.name.c_str(), spec.expected.c_str(),
          spec.dtypes.c_str()};
}

/// The arguments of one call. They are read and checked as far as possible
/// without the specialised kernel. An object lives on the stack, and its unused
/// members stay uninitialised.
struct CallArgs {
  Conversion conversion;
  mlafix_device device;
  Key key;
  uint32_t count;
  uint64_t bytes; ///< approximate bytes of all tensors together
  mlafix_arg args[MLAFIX_MAX_ARGS];
  mlafix_tensor tensors[MLAFIX_MAX_ARGS];
  TensorView views[MLAFIX_MAX_ARGS];
  PeerArgs peers;

  /// Reads one tensor into `view`, and checks what `spec` requires of a tensor
  /// regardless of the call's other arguments. Throws ArgumentError.
  static void readView(const ArgSpec &spec, PyObject *object,
                       const ArgContext &place, Conversion &conversion,
                       TensorView &view);
  /// Reads all arguments from the tuple `given`. Throws ArgumentError.
  void read(const Signature &signature, PyObject *given, uint32_t flags);

  // The steps of `read`: `begin`, then `readArg` for each argument, then
  // `finish`. A call that allocates outputs takes these steps one by one.
  // Instead of `readArg`, it may use `setArg` for an output that it allocates,
  // and it uses `readSize` for an integer argument that is passed as a SizeOf.
  void begin(const Signature &signature, PyObject *given, uint32_t flags);
  void readArg(const Signature &signature, uint32_t index, PyObject *object);
  /// Sets the argument to the tensor that `view` describes.
  void setArg(const Signature &signature, uint32_t index,
              const TensorView &view);
  /// Sets the integer argument `index` to the size of dim `dim` of the tensor
  /// argument `arg`. Returns false if `index` is no 64-bit integer, or if the
  /// tensor has not been read or lacks the dim.
  bool readSize(const Signature &signature, uint32_t index, int32_t arg,
                int32_t dim);
  void finish(const Signature &signature);
  /// Returns the element of the tuple `given` for argument `index`, or None
  /// past the end of `given`. The reference is borrowed.
  static PyObject *argument(PyObject *given, uint32_t index);

  /// Returns the names that the call binds: {"D": "128", "T": "bf16"}. Leaves
  /// out names that occur only in omitted arguments.
  nanobind::dict bindings(const Signature &signature) const;
  /// Returns the presence of each optional argument: {"lse": "absent"}.
  nanobind::dict presence(const Signature &signature) const;

private:
  /// Checks the view of a tensor against `spec`, and converts its dims to the
  /// kernel's order. Throws ArgumentError.
  static void fitView(const ArgSpec &spec, const ArgContext &place,
                      TensorView &view);
  void addTensor(uint32_t index);
  void readMany(const ArgSpec &spec, uint32_t index, PyObject *object,
                const ArgContext &place);
  void bindKeys(const Signature &signature, const ArgSpec &spec, uint32_t index,
                const ArgContext &place);

  void bindProducts(const Signature &signature);
  bool bindProduct(const Signature &signature, uint32_t index,
                   const Product &product);

  uint64_t present; ///< bit i is set if tensor argument i was given
  bool haveDevice;
  uint32_t deviceFrom;       ///< the argument that determined the device
  uint32_t boundBy[maxKeys]; ///< the argument that determined each key
};

/// Reads a Python number into `out`. Throws ArgumentError.
void readScalar(PyObject *object, const ArgSpec &spec, const ArgContext &place,
                mlafix_arg &out);

/// Returns the stream that `object` names, or for None, the current stream of
/// the tensors' framework. Null is the legacy default stream. Throws
/// ArgumentError.
void *readStream(PyObject *object, const Conversion &conversion,
                 mlafix_device device);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_ARGS_H
