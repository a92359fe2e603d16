//===- StandardOutput.h - the end of a tool's output ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TOOLS_STANDARDOUTPUT_H
#define MLAFIX_TOOLS_STANDARDOUTPUT_H

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace mlafix {

/// Flushes the standard output and returns the exit status of the tool `tool`.
/// If the output could not be written, for example because the disk is full,
/// prints an error and returns 1. Otherwise returns `status`.
inline int finishOutput(const char *tool, int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return status;
  std::fprintf(stderr, "%s: error: cannot write the standard output%s%s\n",
               tool, errno ? ": " : "", errno ? std::strerror(errno) : "");
  return 1;
}

} // namespace mlafix

#endif // MLAFIX_TOOLS_STANDARDOUTPUT_H
