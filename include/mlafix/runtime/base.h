/*===- base.h - status codes, errors, log -------------------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Shared by the other headers of the runtime. mlafix/runtime.h includes them *|
|* all and has the conventions.                                               *|
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

/** The version of the interface that this header describes. */
#define MLAFIX_ABI_VERSION 1u

/** The result of a call. Values are never reused. */
typedef enum mlafix_status {
  MLAFIX_OK = 0,
  /** The call is wrong: argument count, dtype, rank, shape, stride, device,
   * null pointer, overlap, option. Nothing was launched. */
  MLAFIX_INVALID_ARGUMENT = 1,
  /** No such file, kernel or device. */
  MLAFIX_NOT_FOUND = 2,
  /** The file could not be read. */
  MLAFIX_IO_ERROR = 3,
  /** The unit is malformed: truncated, corrupt or inconsistent. */
  MLAFIX_BAD_UNIT = 4,
  /** The unit was written for another container or kernel ABI version. */
  MLAFIX_VERSION_MISMATCH = 5,
  /** The verify callback refused it, or the options refuse CPU code. */
  MLAFIX_REFUSED = 6,
  /** No usable CUDA driver (libcuda.so.1) or no CUDA device on this machine. */
  MLAFIX_NO_DRIVER = 7,
  /** The CUDA driver returned an error; the message has its name. */
  MLAFIX_DRIVER_ERROR = 8,
  /** The unit holds no code that this device can run. */
  MLAFIX_NO_IMAGE = 9,
  MLAFIX_OUT_OF_MEMORY = 10,
  /** An error of the library itself. */
  MLAFIX_INTERNAL_ERROR = 11,
  /** A rank did not come to a launch of its group in time. */
  MLAFIX_RANK_ERROR = 12
} mlafix_status;

/** MLAFIX_ABI_VERSION of the library that is loaded. */
MLAFIX_API uint32_t mlafix_abi_version(void) MLAFIX_NOEXCEPT;

/** Version of the library, for example "0.1.0". Valid until the process ends.
 */
MLAFIX_API const char *mlafix_version(void) MLAFIX_NOEXCEPT;

/** Name of a status, for example "INVALID_ARGUMENT". Valid until the process
 * ends. */
MLAFIX_API const char *mlafix_status_name(mlafix_status status) MLAFIX_NOEXCEPT;

/** The message of the last call that failed on this thread, "" if none did.
 * Never null; changes with the next failing call of this thread. */
MLAFIX_API const char *mlafix_last_error(void) MLAFIX_NOEXCEPT;

/** From now on, copy each error message of the calling thread also to `buffer`
 * (at most `capacity` bytes with the NUL; longer messages are cut off). The
 * buffer must live until the thread sets another one or NULL. */
MLAFIX_API void mlafix_set_error_buffer(char *buffer,
                                        size_t capacity) MLAFIX_NOEXCEPT;

typedef enum mlafix_log_level {
  MLAFIX_LOG_DEBUG = 1,
  MLAFIX_LOG_INFO = 2,
  MLAFIX_LOG_WARNING = 3
} mlafix_log_level;

typedef void (*mlafix_log_callback)(void *user, mlafix_log_level level,
                                    const char *message);

/** Send log messages to `callback` (NULL: to nobody, which is the default; the
 * environment variable MLAFIX_LOG=debug|info|warning sends them to stderr). The
 * callback may run on any thread that calls the library, one call at a time,
 * and must neither call the library nor fork. */
MLAFIX_API void mlafix_set_log_callback(mlafix_log_callback callback,
                                        void *user) MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_BASE_H */
