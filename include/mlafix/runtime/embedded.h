/*===- embedded.h - units that are part of a program --------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Used by the headers that mlafix-opt writes (--emit=header,                 *|
|* docs/Embedding.md): a unit that is loaded once, by the first call that     *|
|* needs it.                                                                  *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_EMBEDDED_H
#define MLAFIX_INCLUDE_RUNTIME_EMBEDDED_H

#include "unit.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A unit that a program is compiled with, a variable of static storage. */
typedef struct mlafix_embedded {
  uint32_t struct_size;
  uint32_t abi_version; /**< MLAFIX_ABI_VERSION that the program was compiled
                             for */
  const char *name;     /**< for messages */
  const void *begin;    /**< the bytes of the unit; NULL: a file has them */
  const void *end;
  const char *const *kernels; /**< the name of each kernel, and behind it its
                                   bindings: twice `num_kernels` texts */
  uint32_t num_kernels;
  void *loaded; /**< the library's: NULL before the unit is loaded */
} mlafix_embedded;

/** Load the unit: from the file `path` or, where that is NULL, from its bytes.
 * Does nothing once the unit is loaded. From any thread. Errors: those of
 * mlafix_unit_load_file; NOT_FOUND (neither `path` nor bytes, or the unit lacks
 * one of the kernels); VERSION_MISMATCH (the program was compiled for another
 * ABI version than the library's). After a failure, the next call tries again.
 */
MLAFIX_API mlafix_status mlafix_embedded_load(mlafix_embedded *embedded,
                                              const char *path) MLAFIX_NOEXCEPT;

/** The unit, loaded from its bytes if it is not loaded yet. It lives until the
 * process ends. Errors: those of mlafix_embedded_load. */
MLAFIX_API mlafix_status mlafix_embedded_unit(
    mlafix_embedded *embedded, mlafix_unit **unit) MLAFIX_NOEXCEPT;

/** The kernel at `index` of `embedded->kernels`; likewise. */
MLAFIX_API mlafix_status
mlafix_embedded_kernel(mlafix_embedded *embedded, uint32_t index,
                       const mlafix_kernel **kernel) MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_EMBEDDED_H */
