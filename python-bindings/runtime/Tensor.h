//===- Tensor.h - Python objects as tensors ---------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads Python objects as tensors in three ways, by their type: numpy arrays,
// torch tensors, and other objects with DLPack.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_TENSOR_H
#define MLAFIX_PYTHON_TENSOR_H

#include "ManagedDLPack.h"
#include "mlafix/runtime.h"
#include <cstdio>
#include <memory>
#include <nanobind/nanobind.h>
#include <string>
#include <vector>

namespace mlafix::python {

/// A tensor that a caller passes. The members have no initialisers: each call
/// has an array of views on the stack, and clearing the array would take time.
struct TensorView {
  void *data;
  int32_t dtype; ///< a mlafix_dtype
  uint32_t ndim;
  mlafix_device device;
  bool readOnly;
  int64_t sizes[MLAFIX_MAX_DIMS];
  int64_t strides[MLAFIX_MAX_DIMS];
};

/// Formats a device for messages: "cpu", "cuda:1".
struct DeviceText {
  explicit DeviceText(mlafix_device device) {
    if (device.type == MLAFIX_CPU)
      std::snprintf(text, sizeof(text), "cpu");
    else
      std::snprintf(text, sizeof(text), "cuda:%d", device.ordinal);
  }
  char text[24];
};

inline bool areSame(mlafix_device a, mlafix_device b) {
  return a.type == b.type && a.ordinal == b.ordinal;
}

/// Returns the name of a mlafix_dtype for messages.
inline const char *dtypeName(int64_t dtype) {
  return mlafix_dtype_name(static_cast<mlafix_dtype>(dtype));
}

/// Formats numbers for messages: "[2, 8]".
std::string listText(const int64_t *numbers, uint32_t count);

/// The names and descriptions of an argument for messages.
struct ArgContext {
  const char *kernel;
  const char *name;
  const char *expected; ///< "a tensor of dtype T", ...
  const char *dtypes;   ///< the dtypes allowed for T, in parentheses; or ""

  /// Throws ArgumentError with the message `kernel "k": argument "a": …`.
  [[noreturn]] void fail(const char *format, ...) const
      __attribute__((format(printf, 2, 3)));

  /// Throws ArgumentError for a tensor of a dtype that mlafix lacks. `dtype` is
  /// the dtype's name.
  [[noreturn]] void failOfDType(const char *dtype) const;

  /// Throws ArgumentError after Python code of `object` has failed: "got TYPE,
  /// WHERE: TEXT". TYPE is the object's type, WHERE is `where`, and TEXT is the
  /// message of the pending exception. Rethrows exceptions such as SystemExit.
  [[noreturn]] void failBecause(PyObject *object, const char *where) const;
};

/// The state that the conversions of one call share.
struct Conversion {
  /// True to accept tensors that require grad, since autograd has handled the
  /// call already.
  bool ignoreGrad = false;
  /// 1 if torch's grad mode is on, 0 if it is off, -1 if it is not known yet.
  int gradEnabled = -1;
  /// The stream that waits for the work of producers with __dlpack__. Null is
  /// the legacy default stream.
  void *producerStream = nullptr;
  /// The DLPack table of C functions of the first CUDA tensor whose type has
  /// one. readStream() asks it for the framework's current stream. Null if no
  /// CUDA tensor has a table.
  const dlpack::ExchangeApi *streamApi = nullptr;
  /// True if a torch tensor on a CUDA device was read through its attributes,
  /// since torch has no table or the tensor's type is a subclass.
  bool torchStream = false;
  /// The DLPack capsules of tensors. They must live until the launch.
  std::vector<nanobind::object> keepAlive;
};

/// Reads a Python object into `view`. Throws ArgumentError if the object is not
/// a tensor that kernels can take.
void readTensor(PyObject *object, const ArgContext &place,
                Conversion &conversion, TensorView &view);

/// True if an object is read through DLPack and must not be written: arrays of
/// its class are immutable (jax), or another protocol of the object says that
/// its memory is read-only. Ignores DLPack's own flag, which sets
/// TensorView::readOnly.
bool isImmutable(PyObject *object);

/// Returns the DLPack table of C functions for the type of plain torch tensors.
/// Returns null for all other types, and if this torch has no table.
const dlpack::ExchangeApi *plainTorchApi(PyTypeObject *type);

// The functions among which readTensor chooses by the type of the object. They
// throw ArgumentError.
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

/// Returns torch's current stream on a CUDA device. Calls torch's Python
/// function.
void *currentTorchStream(int32_t ordinal);

/// Returns the elements of `object` as a tuple if it has exactly two. Otherwise
/// returns null.
nanobind::object pairOf(nanobind::handle object);

/// Returns a borrowed reference to a module that is imported already. Otherwise
/// returns null.
PyObject *importedModule(const char *name);

/// Returns the only instance of Found, which the first call creates and nothing
/// destroys. The constructor looks up Python objects. The caller holds the
/// interpreter's lock.
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
