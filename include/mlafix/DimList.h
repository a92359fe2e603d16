//===- DimList.h - the dims of a tensor in a message ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIMLIST_H
#define MLAFIX_DIMLIST_H

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace mlafix {

/// Formats a tensor's dims for a message as `; the dims are "n H D"`, with "_"
/// for a dim that has no name. The text is empty if the tensor has no dims or
/// the names are too long.
struct DimList {
  /// Lists the names from number `first` on.
  explicit DimList(const std::vector<std::string> &names, size_t first = 0) {
    text[0] = '\0';
    size_t length = 0;
    bool hasProduct = false;
    for (size_t i = first; i < names.size(); ++i) {
      const std::string &name = names[i];
      hasProduct |= !name.empty() && name.front() == '('; // such as "(G 4)"
      length += static_cast<size_t>(
          std::snprintf(text + length, sizeof(text) - length, "%s%s",
                        length ? " " : "; the dims are \"",
                        name.empty() ? "_" : name.c_str()));
      if (length + 48 > sizeof(text)) { // such long names would not help
        text[0] = '\0';
        return;
      }
    }
    if (length)
      std::snprintf(text + length, sizeof(text) - length, "\"%s",
                    hasProduct ? ", and (...) is one dim, a product" : "");
  }

  char text[176];
};

} // namespace mlafix

#endif // MLAFIX_DIMLIST_H
