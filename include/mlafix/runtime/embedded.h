/*===- embedded.h - units that are part of a program --------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* The headers that mlafix-opt writes use this one (--emit=header,            *|
|* docs/Embedding.md). It declares a unit that is loaded once, by the first   *|
|* call that needs it.                                                        *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_EMBEDDED_H
#define MLAFIX_INCLUDE_RUNTIME_EMBEDDED_H

#include "unit.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A unit that is compiled into a program. It is a variable of static
 * storage. */
typedef struct mlafix_embedded {
  uint32_t struct_size;
  /** The MLAFIX_ABI_VERSION for which the program was compiled. */
  uint32_t abi_version;
  const char *name;  /**< the unit's name for messages */
  const void *begin; /**< the unit's bytes; NULL: they are in a file */
  const void *end;
  /** The name and the bindings of each kernel, one after the other: 2 *
   * `num_kernels` texts. */
  const char *const *kernels;
  uint32_t num_kernels;
  void *loaded; /**< belongs to the library; NULL: not loaded yet */
} mlafix_embedded;

/** Loads the unit from the file `path`, or from its embedded bytes if `path` is
 * NULL. Does nothing if the unit is loaded already. Any thread may call it.
 * After a failure, the next call tries again. Errors: those of
 * mlafix_unit_load_file; NOT_FOUND (there is neither a `path` nor embedded
 * bytes, or the unit lacks one of the kernels); VERSION_MISMATCH (the program
 * was compiled for another ABI version than the library's). */
MLAFIX_API mlafix_status mlafix_embedded_load(mlafix_embedded *embedded,
                                              const char *path) MLAFIX_NOEXCEPT;

/** Sets `unit` to the loaded unit. Loads it from its embedded bytes first if
 * needed. The unit lives until the process ends. Errors: those of
 * mlafix_embedded_load. */
MLAFIX_API mlafix_status mlafix_embedded_unit(
    mlafix_embedded *embedded, mlafix_unit **unit) MLAFIX_NOEXCEPT;

/** Sets `kernel` to the kernel at `index` of `embedded->kernels`. Loads the
 * unit first if needed. Errors: those of mlafix_embedded_load. */
MLAFIX_API mlafix_status
mlafix_embedded_kernel(mlafix_embedded *embedded, uint32_t index,
                       const mlafix_kernel **kernel) MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_EMBEDDED_H */
