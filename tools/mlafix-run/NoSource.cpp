//===- NoSource.cpp - A build without the compiler ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Source.h"

static bool refuse(const std::string &path, std::string &error) {
  error = "expected a unit, got the source \"" + path +
          "\": this mlafix-run was built without the compiler "
          "(MLAFIX_BUILD_COMPILER=OFF); compile it with mlafix-opt --emit=unit";
  return false;
}

bool mlafix::run::compileSource(const std::string &path, const std::string &,
                                const std::string &, std::string &,
                                std::string &error) {
  return refuse(path, error);
}

bool mlafix::run::followRows(const std::string &path, const std::string &,
                             const std::string &,
                             const std::vector<LaunchValue> &, FollowedRows &,
                             std::string &error) {
  return refuse(path, error);
}
