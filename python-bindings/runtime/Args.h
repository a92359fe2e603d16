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
#include <cstdio>

namespace mlafix::python {

/// Flags of the Python bindings in addition to those of mlafix_launch_flags.
enum : uint32_t {
  /// Accept tensors that require grad: the caller is below autograd.
  flagIgnoreGrad = 1u << 16,
  runtimeFlags = 0xffff
};

/// Describes an argument for messages.
inline ArgContext contextOf(const Signature &signature, const ArgSpec &spec) {
  return {signature.name.c_str(), spec.name.c_str(), spec.expected.c_str(),
          spec.dtypes.c_str()};
}

/// "cpu", "cuda:1".
struct DeviceText {
  explicit DeviceText(mlafix_device device) {
    if (device.type == MLAFIX_CPU)
      std::snprintf(text, sizeof(text), "cpu");
    else
      std::snprintf(text, sizeof(text), "cuda:%d", device.ordinal);
  }
  char text[24];
};

/// The arguments of one call, read and checked as far as possible without the
/// specialised kernel. Lives on the stack; unused members stay uninitialised.
struct CallArgs {
  Conversion conversion;
  mlafix_device device;
  Key key;
  uint32_t count;
  uint64_t bytes; ///< total of all tensors, approximately
  mlafix_arg args[MLAFIX_MAX_ARGS];
  mlafix_tensor tensors[MLAFIX_MAX_ARGS];
  TensorView views[MLAFIX_MAX_ARGS];
  PeerArgs peers;

  /// Reads one tensor as `spec` requires. Does not check requirements that
  /// depend on other arguments.
  static void readView(const ArgSpec &spec, PyObject *object,
                       const ArgContext &place, Conversion &conversion,
                       TensorView &view);
  /// Reads the tuple `given`. Throws ArgumentError.
  void read(const Signature &signature, PyObject *given, uint32_t flags);

  // The steps of `read`, for calls that allocate outputs between them.
  void begin(const Signature &signature, PyObject *given, uint32_t flags);
  void readArg(const Signature &signature, uint32_t index, PyObject *object);
  /// Sets the argument to a tensor whose view is known.
  void setArg(const Signature &signature, uint32_t index,
              const TensorView &view);
  /// Reads an integer that is the size of a tensor read before. Returns false
  /// if the argument is not such an integer.
  bool readSize(const Signature &signature, uint32_t index, int32_t arg,
                int32_t dim);
  void finish(const Signature &signature);
  /// The element of `given` that `read` takes for argument `index`. None past
  /// the end of `given`.
  static PyObject *argument(PyObject *given, uint32_t index);

  /// The bindings of the key: {"D": "128", "T": "bf16"}. Names that only occur
  /// in omitted arguments are left out.
  nanobind::dict bindings(const Signature &signature) const;
  /// The presence of optional arguments, in the compiler's form: {"lse":
  /// "absent"}.
  nanobind::dict presence(const Signature &signature) const;

private:
  /// Adapts the view of a tensor to `spec`. Throws ArgumentError.
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

  uint64_t present; ///< one bit per tensor, set if it was given
  bool haveDevice;
  uint32_t deviceFrom;       ///< the argument that determined the device
  uint32_t boundBy[maxKeys]; ///< the argument that determined each key
};

/// Reads a Python number into `out`. Throws ArgumentError.
void readScalar(PyObject *object, const ArgSpec &spec, const ArgContext &place,
                mlafix_arg &out);

/// The stream that `object` names (None: the current stream of the tensors'
/// framework). Throws ArgumentError.
void *readStream(PyObject *object, const Conversion &conversion,
                 mlafix_device device);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_ARGS_H
