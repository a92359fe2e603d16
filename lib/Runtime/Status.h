//===- Status.h - Errors and log of the runtime -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every fallible function of the runtime returns a mlafix_status and records
// one sentence with fail(). Nothing here allocates: a message goes to a fixed
// buffer of the thread, so that a failed check costs no more than formatting.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_STATUS_H
#define MLAFIX_RUNTIME_STATUS_H

#include "mlafix/runtime.h"

#include <cstddef>
#include <exception>
#include <new>

namespace mlafix::runtime {

/// Records a message for mlafix_last_error() and returns `status`.
mlafix_status fail(mlafix_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// Puts `prefix` in front of the message just recorded.
mlafix_status prefixError(mlafix_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// The length of `text` without a truncated UTF-8 character at its end.
size_t wholeLength(const char *text, size_t length);

/// Sends a message to the log callback, or to stderr where MLAFIX_LOG asks.
void log(mlafix_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// True if messages of this level are printed or passed to a callback.
bool isLogged(mlafix_log_level level);

/// Runs `body`, which returns a mlafix_status; turns exceptions into statuses.
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

/// Returns from the enclosing function unless `EXPR` is MLAFIX_OK.
#define MLAFIX_TRY(EXPR)                                                       \
  do {                                                                         \
    mlafix_status mlafixTryStatus = (EXPR);                                    \
    if (mlafixTryStatus != MLAFIX_OK)                                          \
      return mlafixTryStatus;                                                  \
  } while (false)

/// Fails with a message about the argument that DESC describes.
#define WRONG(DESC, FORMAT, ...)                                               \
  fail(MLAFIX_INVALID_ARGUMENT, "argument \"%s\": " FORMAT,                    \
       (DESC).name.c_str(), __VA_ARGS__)

#endif // MLAFIX_RUNTIME_STATUS_H
