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

/// Python's flags beside those of mlafix_launch_flags.
enum : uint32_t {
  /// Accept tensors that require grad: the caller is below autograd.
  flagIgnoreGrad = 1u << 16,
  runtimeFlags = 0xffff
};

/// The words for an argument in messages.
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

/// The arguments of one call, read and checked as far as that goes without the
/// specialised kernel. On the stack; nothing that is not used is initialised.
struct CallArgs {
  Conversion conversion;
  mlafix_device device;
  Key key;
  uint32_t count;
  uint64_t bytes; ///< of all tensors, about
  mlafix_arg args[MLAFIX_MAX_ARGS];
  mlafix_tensor tensors[MLAFIX_MAX_ARGS];
  TensorView views[MLAFIX_MAX_ARGS];
  PeerArgs peers;

  /// One tensor, as `spec` wants it; what depends on other arguments apart.
  static void readView(const ArgSpec &spec, PyObject *object,
                       const ArgContext &place, Conversion &conversion,
                       TensorView &view);
  /// Reads the tuple `given`. Throws ArgumentError.
  void read(const Signature &signature, PyObject *given, uint32_t flags);

  // The steps of `read`, for calls whose outputs are made in between.
  void begin(const Signature &signature, PyObject *given, uint32_t flags);
  void readArg(const Signature &signature, uint32_t index, PyObject *object);
  /// A tensor whose view is known.
  void setArg(const Signature &signature, uint32_t index,
              const TensorView &view);
  /// An integer that is the size of a tensor read before; false if it is none.
  bool readSize(const Signature &signature, uint32_t index, int32_t arg,
                int32_t dim);
  void finish(const Signature &signature);
  /// The element of `given` that `read` finds at `index`: None past its end.
  static PyObject *argument(PyObject *given, uint32_t index);

  /// {"D": "128", "T": "bf16"}: what the key binds. Names that only arguments
  /// omitted have are not in it.
  nanobind::dict bindings(const Signature &signature) const;
  /// {"lse": "absent"}: which optional arguments were given, in the compiler's
  /// words.
  nanobind::dict presence(const Signature &signature) const;

private:
  /// The view of a tensor as `spec` wants it. Throws ArgumentError.
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

  uint64_t present; ///< a bit for each tensor that was given
  bool haveDevice;
  uint32_t deviceFrom;       ///< the argument that decided the device
  uint32_t boundBy[maxKeys]; ///< the argument that decided a key
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
