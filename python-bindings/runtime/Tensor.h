//===- Tensor.h - Python objects as tensors ---------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Three ways from an object to a tensor, by its type: numpy arrays, torch
// tensors, and whatever else has __dlpack__.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_TENSOR_H
#define MLAFIX_PYTHON_TENSOR_H

#include "ManagedDLPack.h"
#include "mlafix/runtime.h"
#include <cstdarg>
#include <memory>
#include <nanobind/nanobind.h>
#include <string>
#include <vector>

namespace mlafix::python {

/// A tensor argument as the caller passed it. Left uninitialised on purpose: an
/// array of them lives on the stack of every call.
struct TensorView {
  void *data;
  int32_t dtype; ///< a mlafix_dtype
  uint32_t ndim;
  mlafix_device device;
  bool readOnly;
  int64_t sizes[MLAFIX_MAX_DIMS];
  int64_t strides[MLAFIX_MAX_DIMS];
};

/// Identifies an argument in messages.
struct ArgContext {
  const char *kernel;
  const char *name;
  const char *expected; ///< "a tensor of dtype T", ...
  const char *dtypes;   ///< the dtypes allowed for T, in parentheses; or ""

  /// Throws ArgumentError: kernel "k": argument "a": …
  [[noreturn]] void fail(const char *format, ...) const
      __attribute__((format(printf, 2, 3)));

  /// Throws the error for a tensor whose dtype mlafix does not have.
  [[noreturn]] void failOfDType(const char *dtype) const;

  /// Throws the error after Python code, called for `object`, has raised an
  /// exception: "got TYPE, WHERE: TEXT". Rethrows exceptions that are not an
  /// Exception (SystemExit).
  [[noreturn]] void failBecause(PyObject *object, const char *where) const;
};

/// The state that the conversions of one call share.
struct Conversion {
  /// True: accept tensors that require grad (the caller is below autograd).
  bool ignoreGrad = false;
  /// 1 if torch's grad mode is on, 0 if it is off, -1 if unknown yet.
  int gradEnabled = -1;
  /// The stream before which producers with __dlpack__ order their work. Null:
  /// the legacy default stream.
  void *producerStream = nullptr;
  /// The first framework with a current stream among the CUDA arguments.
  const dlpack::ExchangeApi *streamApi = nullptr;
  /// True if a torch tensor on a CUDA device was read, and torch has no
  /// exchange API.
  bool torchStream = false;
  /// Capsules that must live until the launch.
  std::vector<nanobind::object> keepAlive;
};

/// Fills in `view`. Throws ArgumentError for an object that is not a tensor
/// which kernels can take.
void readTensor(PyObject *object, const ArgContext &place,
                Conversion &conversion, TensorView &view);

/// True if a tensor that was read by DLPack must not be written, because its
/// library never changes an array (jax), or because another of its protocols
/// says so. DLPack's own flag is TensorView::readOnly.
bool isImmutable(PyObject *object);

/// The table of C functions of a plain torch tensor's type. Null for all other
/// types, and if torch has none.
const dlpack::ExchangeApi *plainTorchApi(PyTypeObject *type);

// The readers among which readTensor chooses. Each is in its own file.
void readNumpy(PyObject *object, const ArgContext &place, TensorView &view);
void readTorch(PyObject *object, const dlpack::ExchangeApi *api,
               const ArgContext &place, Conversion &conversion,
               TensorView &view);
void readProducer(PyObject *object, const ArgContext &place,
                  Conversion &conversion, TensorView &view);
void readDLPack(const dlpack::Tensor &tensor, const ArgContext &place,
                TensorView &view);

/// True if the buffer protocol or an array interface says that an object's
/// memory is read-only. Does not use DLPack.
bool saysReadOnly(PyObject *object);

/// torch's current stream on a CUDA device, from torch itself.
void *currentTorchStream(int32_t ordinal);

/// The elements of `object` as a tuple if it has exactly two, else null.
nanobind::object pairOf(nanobind::handle object);

/// The module if it has been imported already, else null; borrowed.
PyObject *importedModule(const char *name);

/// Objects that the first call looks up. They are never released, like the
/// modules of the process. The caller holds the interpreter's lock.
template <typename Found> const Found &lookedUp() {
  // Not a guarded static variable: a waiting thread would hold the
  // interpreter's lock, which the initialising thread may need.
  static const Found *found = nullptr;
  if (!found) {
    auto made = std::make_unique<Found>();
    if (!found)
      found = made.release();
  }
  return *found;
}

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_TENSOR_H
