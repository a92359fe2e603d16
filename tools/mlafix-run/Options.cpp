//===- Options.cpp - The command line of mlafix-run -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "cuda/Driver.h"

#include <algorithm>
#include <stdexcept>

using namespace mlafix::run;

const char *const mlafix::run::usage =
    R"(mlafix-run UNIT --kernel NAME [options]   run a kernel of a unit on .npy files
mlafix-run UNIT --list                    what the unit holds

UNIT is a .mlafix file, or a .mlir source that is compiled on the spot.

  --kernel NAME         the kernel; may be omitted where there is only one
  --bindings D=128,...  which specialisation (for a source: what to compile)
  --device DEVICE       cpu (default) or cuda:N
  --arg NAME=VALUE      a scalar (5, 0.5, true), or the .npy file of a tensor: the
                        input, or what a tensor that is written holds before
  --out NAME=FILE       where to write a tensor that the kernel writes
  --shape NAME=2x3x4    the shape of an output that the inputs' dims do not give
  --debug               follow the rows of a source: what they print and do wrong;
                        and run twice, into outputs that begin as two different
                        values: elements that no row writes. Exit status 1 if
                        there is anything wrong
  --list                list kernels and their signatures
  --help                this text

bf16 is read and written as '<V2', f8e4m3fn and f8e8m0 as '|V1' and f8e5m2 as
'<f1', as ml_dtypes saves them (np.load(f).view(ml_dtypes.bfloat16)); '<u2' and '|u1' are
read too. Outputs start out as 0xff bytes, so that elements the kernel leaves
alone show.
)";

namespace {

/// Splits "name=value" at the first '='.
std::pair<std::string, std::string> splitPair(const std::string &option,
                                              const std::string &text) {
  size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size())
    throw std::runtime_error(option + ": expected NAME=VALUE, got \"" + text +
                             "\"");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

template <typename Map, typename Value>
void addOnce(const std::string &option, Map &map, const std::string &name,
             Value value) {
  if (!map.emplace(name, std::move(value)).second)
    throw std::runtime_error(option + ": expected each name once, got \"" +
                             name + "\" again");
}

std::vector<int64_t> parseShape(const std::string &text) {
  std::vector<int64_t> shape;
  if (text == "scalar") // a tensor without dims
    return shape;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find('x', begin), text.size());
    std::string digits = text.substr(begin, end - begin);
    if (digits.empty() || digits.size() > 18 ||
        digits.find_first_not_of("0123456789") != digits.npos)
      throw std::runtime_error("--shape: expected sizes such as 2x3x4 (or "
                               "\"scalar\" for none), got \"" +
                               text + "\"");
    shape.push_back(std::stoll(digits));
    begin = end + 1;
  }
  return shape;
}

} // namespace

Options mlafix::run::parseOptions(int argc, const char *const *argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    if (option.compare(0, 2, "--") != 0) {
      if (!options.file.empty())
        throw std::runtime_error("expected one unit, got \"" + options.file +
                                 "\" and \"" + option + "\"");
      options.file = option;
      continue;
    }
    if (option == "--list" || option == "--help" || option == "--debug") {
      (option == "--list"   ? options.list
       : option == "--help" ? options.help
                            : options.debug) = true;
      continue;
    }
    std::string value;
    size_t equals = option.find('=');
    if (equals != option.npos) {
      value = option.substr(equals + 1);
      option.resize(equals);
    } else if (i + 1 < argc) {
      value = argv[++i];
    } else {
      throw std::runtime_error(option + ": expected a value, got none");
    }
    if (option == "--kernel") {
      options.kernel = value;
    } else if (option == "--bindings") {
      options.bindings = value;
    } else if (option == "--device") {
      options.device = mlafix::tools::parseDevice(value);
    } else if (option == "--arg" || option == "--out") {
      auto pair = splitPair(option, value);
      addOnce(option, option == "--arg" ? options.args : options.outs,
              pair.first, pair.second);
    } else if (option == "--shape") {
      auto pair = splitPair(option, value);
      addOnce(option, options.shapes, pair.first, parseShape(pair.second));
    } else {
      throw std::runtime_error("expected an option that --help lists, got \"" +
                               option + "\"");
    }
  }
  if (options.file.empty() && !options.help)
    throw std::runtime_error("expected a unit, got none (see --help)");
  return options;
}
