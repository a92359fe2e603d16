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

/// A tensor argument as it came. Left uninitialised on purpose: an array of
/// them lives on the stack of every call.
struct TensorView {
  void *data;
  int32_t dtype; ///< a mlafix_dtype
  uint32_t ndim;
  mlafix_device device;
  bool readOnly;
  int64_t sizes[MLAFIX_MAX_DIMS];
  int64_t strides[MLAFIX_MAX_DIMS];
};

/// Which argument, for messages.
struct ArgContext {
  const char *kernel;
  const char *name;
  const char *expected; ///< "a tensor of dtype T", ...
  const char *dtypes;   ///< what T may be, in parentheses; or ""

  /// ArgumentError: kernel "k": argument "a": …
  [[noreturn]] void fail(const char *format, ...) const
      __attribute__((format(printf, 2, 3)));

  /// The same for a tensor of a dtype that mlafix does not have.
  [[noreturn]] void failOfDType(const char *dtype) const;

  /// The same where Python code, of `object` or for it, raised an exception:
  /// "got TYPE, WHERE: TEXT". What is no Exception (SystemExit) is thrown on.
  [[noreturn]] void failBecause(PyObject *object, const char *where) const;
};

/// The state that the conversions of one call share.
struct Conversion {
  /// True: accept tensors that require grad (the caller is below autograd).
  bool ignoreGrad = false;
  /// True if torch's grad mode is on; negative: not asked yet.
  int gradEnabled = -1;
  /// The stream that producers with __dlpack__ order their work before; none:
  /// the legacy default stream.
  void *producerStream = nullptr;
  /// The first framework with a current stream among the CUDA arguments.
  const dlpack::ExchangeApi *streamApi = nullptr;
  /// A torch tensor on a CUDA device came, and torch has no exchange API.
  bool torchStream = false;
  /// Objects that must live until the launch is made: capsules.
  std::vector<nanobind::object> keepAlive;
};

/// Fills in `view`. Throws ArgumentError for anything that is no tensor which
/// a kernel could take.
void readTensor(PyObject *object, const ArgContext &place,
                Conversion &conversion, TensorView &view);

/// True if a tensor that was read by DLPack must not be written: its library
/// never changes an array (jax), or another of its protocols says so. DLPack's
/// own flag is TensorView::readOnly.
bool isImmutable(PyObject *object);

/// The table of C functions of a plain torch tensor's type; null for all other
/// types, and for a torch that has none.
const dlpack::ExchangeApi *plainTorchApi(PyTypeObject *type);

// The readers that readTensor chooses among; each in a file of its own.
void readNumpy(PyObject *object, const ArgContext &place, TensorView &view);
void readTorch(PyObject *object, const dlpack::ExchangeApi *api,
               const ArgContext &place, Conversion &conversion,
               TensorView &view);
void readProducer(PyObject *object, const ArgContext &place,
                  Conversion &conversion, TensorView &view);
void readDLPack(const dlpack::Tensor &tensor, const ArgContext &place,
                TensorView &view);

/// True if a protocol of Python other than DLPack calls the memory of an object
/// read-only.
bool saysReadOnly(PyObject *object);

/// torch's current stream on a CUDA device, asked of torch itself.
void *currentTorchStream(int32_t ordinal);

/// A tuple of the elements of `object`, if that has two; else null.
nanobind::object pairOf(nanobind::handle object);

/// The module if it has been imported already, else null; borrowed.
PyObject *importedModule(const char *name);

/// Objects that the first call looks up and that are kept for ever, as the
/// process keeps Python's modules. The interpreter's lock is held.
template <typename Found> const Found &lookedUp() {
  // No variable with a guard: who waits for it keeps the interpreter's lock,
  // which the thread that fills the variable in may want.
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
