/*===- CInterfaceTest.c - runtime.h from C, against the shared library ----===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Compiled as strict C11: that it builds is half of the test.                *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "mlafix/runtime.h"

#include <stdio.h>
#include <string.h>

#define EXPECT(CONDITION)                                                      \
  do {                                                                         \
    if (!(CONDITION)) {                                                        \
      fprintf(stderr, "line %d: expected %s, last error: %s\n", __LINE__,      \
              #CONDITION, mlafix_last_error());                                \
      return 1;                                                                \
    }                                                                          \
  } while (0)

int main(void) {
  mlafix_load_options options = MLAFIX_LOAD_OPTIONS_INIT;
  mlafix_tensor tensor = MLAFIX_TENSOR_INIT;
  mlafix_arg_info arg = MLAFIX_ARG_INFO_INIT;
  mlafix_code_info code = MLAFIX_CODE_INFO_INIT;
  mlafix_launch_info launch = MLAFIX_LAUNCH_INFO_INIT;
  mlafix_variant_info variant = MLAFIX_VARIANT_INFO_INIT;
  mlafix_unit *unit = NULL;
  char buffer[256] = "";

  EXPECT(tensor.struct_size == sizeof(tensor) &&
         arg.struct_size == sizeof(arg));
  EXPECT(code.struct_size == sizeof(code));
  EXPECT(launch.struct_size == sizeof(launch));
  EXPECT(variant.struct_size == sizeof(variant));
  EXPECT(mlafix_abi_version() == MLAFIX_ABI_VERSION);
  EXPECT(strcmp(mlafix_dtype_name(MLAFIX_BF16), "bf16") == 0);
  EXPECT(strcmp(mlafix_last_error(), "") == 0);
  mlafix_set_error_buffer(buffer, sizeof(buffer));
  EXPECT(mlafix_unit_load_file("/no/such.mlafix", &options, &unit) ==
         MLAFIX_NOT_FOUND);
  EXPECT(unit == NULL);
  EXPECT(strstr(buffer, "/no/such.mlafix") != NULL);
  EXPECT(strcmp(buffer, mlafix_last_error()) == 0);
  EXPECT(mlafix_bound_variant_info(NULL, 0, &variant) ==
         MLAFIX_INVALID_ARGUMENT);
  mlafix_unit_destroy(unit);
  return 0;
}
