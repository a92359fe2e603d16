/*===- base.h - status codes, errors, log -------------------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Declarations that all other headers of the runtime use. mlafix/runtime.h   *|
|* includes all of them and states the conventions.                           *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_BASE_H
#define MLAFIX_INCLUDE_RUNTIME_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define MLAFIX_API __attribute__((visibility("default")))
#else
#define MLAFIX_API
#endif

#ifdef __cplusplus
#define MLAFIX_NOEXCEPT noexcept
extern "C" {
#else
#define MLAFIX_NOEXCEPT
#endif

/** The ABI version that this header describes. */
#define MLAFIX_ABI_VERSION 1u

/** The result of a call. The number of a status never changes its meaning. */
typedef enum mlafix_status {
  MLAFIX_OK = 0,
  /** The call is wrong: number of arguments, dtype, rank, shape, stride,
   * device, null pointer, overlap or option. Nothing was launched. */
  MLAFIX_INVALID_ARGUMENT = 1,
  /** The file, kernel or device does not exist. */
  MLAFIX_NOT_FOUND = 2,
  /** The file could not be read. */
  MLAFIX_IO_ERROR = 3,
  /** The unit is malformed: truncated, corrupt or inconsistent. */
  MLAFIX_BAD_UNIT = 4,
  /** The unit was written for another container or kernel ABI version. */
  MLAFIX_VERSION_MISMATCH = 5,
  /** The verify callback refused the unit, or the options refuse CPU code. */
  MLAFIX_REFUSED = 6,
  /** The machine has no usable CUDA driver (libcuda.so.1) or no CUDA device. */
  MLAFIX_NO_DRIVER = 7,
  /** The CUDA driver returned an error. The message contains its name. */
  MLAFIX_DRIVER_ERROR = 8,
  /** The unit contains no code that this device can run. */
  MLAFIX_NO_IMAGE = 9,
  MLAFIX_OUT_OF_MEMORY = 10,
  /** The library itself has a defect. */
  MLAFIX_INTERNAL_ERROR = 11,
  /** A rank did not begin a launch of its group before the time-out. */
  MLAFIX_RANK_ERROR = 12
} mlafix_status;

/** Returns the MLAFIX_ABI_VERSION of the loaded library. */
MLAFIX_API uint32_t mlafix_abi_version(void) MLAFIX_NOEXCEPT;

/** Returns the version of the library, for example "0.1.0". The text is valid
 * until the process ends. */
MLAFIX_API const char *mlafix_version(void) MLAFIX_NOEXCEPT;

/** Returns the name of a status, for example "INVALID_ARGUMENT". The text is
 * valid until the process ends. */
MLAFIX_API const char *mlafix_status_name(mlafix_status status) MLAFIX_NOEXCEPT;

/** Returns the message of the last call that failed on this thread, or "" if no
 * call failed. Never returns null. The next failing call of this thread changes
 * the text. */
MLAFIX_API const char *mlafix_last_error(void) MLAFIX_NOEXCEPT;

/** Copies each later error message of the calling thread to `buffer`, too. A
 * copy has at most `capacity` bytes with the NUL; longer messages are cut off.
 * The buffer must live until the thread sets another buffer or NULL. */
MLAFIX_API void mlafix_set_error_buffer(char *buffer,
                                        size_t capacity) MLAFIX_NOEXCEPT;

typedef enum mlafix_log_level {
  MLAFIX_LOG_DEBUG = 1,
  MLAFIX_LOG_INFO = 2,
  MLAFIX_LOG_WARNING = 3
} mlafix_log_level;

typedef void (*mlafix_log_callback)(void *user, mlafix_log_level level,
                                    const char *message);

/** Sends log messages to `callback`. By default, and with NULL, nobody gets
 * them; the environment variable MLAFIX_LOG=debug|info|warning sends them to
 * stderr instead. The callback may run on any thread that calls the library,
 * but only once at a time. It must neither call the library nor fork. */
MLAFIX_API void mlafix_set_log_callback(mlafix_log_callback callback,
                                        void *user) MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_BASE_H */
