//===- Status.h - Errors and log of the runtime -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every function of the runtime that can fail returns a mlafix_status, and
// records one sentence with fail(). Nothing here allocates: the message goes to
// a fixed buffer of the thread. So a failed check costs no more than formatting
// its message.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_STATUS_H
#define MLAFIX_RUNTIME_STATUS_H

#include "mlafix/runtime.h"

#include <cstddef>
#include <exception>
#include <new>

namespace mlafix::runtime {

/// Records a message for mlafix_last_error(). Returns `status`.
mlafix_status fail(mlafix_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// Puts a prefix before the message just recorded. Returns `status`.
mlafix_status prefixError(mlafix_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// Fails with INVALID_ARGUMENT if the argument called `name` is null. The
/// message says that `what` was expected.
mlafix_status require(const void *argument, const char *name,
                      const char *what = "a pointer");

/// Returns the length of `text` without an incomplete UTF-8 character at its
/// end.
size_t wholeLength(const char *text, size_t length);

/// Sends a message to the log callback. Without a callback, prints it to stderr
/// if MLAFIX_LOG asks for messages of this level.
void log(mlafix_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// Returns true if messages of this level are printed or passed to a callback.
bool isLogged(mlafix_log_level level);

/// Runs `body`, which returns a mlafix_status. Turns an exception into a
/// failure.
template <typename Body> mlafix_status guarded(Body &&body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fail(MLAFIX_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception &error) {
    return fail(MLAFIX_INTERNAL_ERROR, "internal error: %s", error.what());
  } catch (...) {
    return fail(MLAFIX_INTERNAL_ERROR, "internal error: unknown exception");
  }
}

} // namespace mlafix::runtime

/// Returns from the enclosing function if EXPR is not MLAFIX_OK.
#define MLAFIX_TRY(EXPR)                                                       \
  do {                                                                         \
    mlafix_status mlafixTryStatus = (EXPR);                                    \
    if (mlafixTryStatus != MLAFIX_OK)                                          \
      return mlafixTryStatus;                                                  \
  } while (false)

/// Fails with INVALID_ARGUMENT and a message about the argument that DESC
/// describes.
#define WRONG(DESC, FORMAT, ...)                                               \
  fail(MLAFIX_INVALID_ARGUMENT, "argument \"%s\": " FORMAT,                    \
       (DESC).name.c_str(), __VA_ARGS__)

#endif // MLAFIX_RUNTIME_STATUS_H
