//===- LimitsTest.cpp - Units obey the runtime's limits -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "mlafix/Compiler.h"
#include "mlafix/UnitLimits.h"
#include "mlafix/runtime.h"

#include "gtest/gtest.h"

using namespace mlafix;

namespace {

/// Makes the text of a kernel that stores a number. Tests change parts of the
/// text.
struct Source {
  std::string name = "k";
  std::string argument = "x";
  std::string dim = "n";
  int scalars = 0; ///< scalar arguments after the first argument
  int rank = 1;
  int extents = 1;
  std::string stride = "1";

  std::string text() const {
    std::string sizes = "?", strides = stride, dims = "\"" + dim + "\"";
    std::string indices = "%t", zeros;
    for (int i = 1; i < rank; ++i) {
      sizes += "x?";
      strides += ", ?";
      dims += ", \"\"";
      indices += ", %c0";
    }
    std::string type =
        "memref<" + sizes + "xf32, strided<[" + strides + "], offset: ?>>";
    std::string args, grid = "%t", over = "%n";
    for (int i = 0; i < scalars; ++i)
      args += ", %s" + std::to_string(i) + ": f32";
    for (int i = 1; i < extents; ++i) {
      grid += ", %i" + std::to_string(i);
      over += ", %c1";
    }
    std::string x = "%" + argument;
    return "mlafix.kernel @\"" + name + "\"(" + x + ": " + type +
           " {mlafix.dims = [" + dims + "], mlafix.access = \"update\"}" +
           args +
           ") {\n  %c0 = arith.constant 0 : index\n"
           "  %c1 = arith.constant 1 : index\n  %n = memref.dim " +
           x + ", %c0 : " + type + "\n  mlafix.forall (" + grid + ") in (" +
           over +
           ") {\n    %one = arith.constant 1.0 : f32\n    mlafix.store %one, " +
           x + "[" + indices + "] : f32, " + type + "\n  }\n}\n";
  }
};

CompileResult compileUnit(const std::string &text) {
  CompileOptions options;
  options.emit = Emit::Unit;
  options.targets = {"x86-64"};
  return compile(text, "limits.mlir", options);
}

/// Expects an error that has a location and contains `words`.
void expectRefused(const Source &source, const std::string &words) {
  CompileResult result = compileUnit(source.text());
  EXPECT_FALSE(result.ok) << words;
  EXPECT_EQ(result.diagnostics.find("limits.mlir:"), 0u) << result.diagnostics;
  EXPECT_NE(result.diagnostics.find(words), std::string::npos)
      << result.diagnostics.substr(0, 2000);
}

/// Expects that the source compiles to a unit that the runtime loads.
void expectLoads(const Source &source) {
  CompileResult result = compileUnit(source.text());
  ASSERT_TRUE(result.ok) << result.diagnostics.substr(0, 2000);
  mlafix_unit *unit = nullptr;
  EXPECT_EQ(mlafix_unit_load_memory(result.output.data(), result.output.size(),
                                    nullptr, &unit),
            MLAFIX_OK)
      << mlafix_last_error();
  mlafix_unit_destroy(unit);
}

TEST(Limits, arguments) {
  Source source;
  source.scalars = MLAFIX_MAX_ARGS - 1;
  expectLoads(source);
  ++source.scalars;
  expectRefused(source, "expected at most 64 arguments, got 65");
}

TEST(Limits, names_of_kernels) {
  Source source;
  for (const std::string &name :
       {std::string("a b"), std::string("../x"), std::string("\xe2\x82\xac"),
        std::string(limits::kernelNameBytes, 'x')}) {
    source.name = name;
    expectLoads(source);
  }
  source.name = std::string(limits::kernelNameBytes + 1, 'x');
  expectRefused(source, "expected a name of at most 960 bytes, got one of 961");
  source.name = "";
  EXPECT_FALSE(compileUnit(source.text()).ok);
  for (const char *name : {"a\\0Ab", "a\\00b", "\\7F", "a\\tb"}) {
    source.name = name;
    expectRefused(source, "control characters, got one with control");
  }
  source.name = "a\\FFb";
  expectRefused(source, "got one that is not UTF-8");
}

TEST(Limits, names_of_arguments_and_dims) {
  Source source;
  source.argument = std::string(limits::nameBytes, 'x');
  expectLoads(source);
  source.argument += 'x';
  expectRefused(source, "expected the name of argument 0 to be a text of 1 to "
                        "1024 bytes in UTF-8 without control characters, got "
                        "one of 1025 bytes");
  source.argument = "x";
  source.dim = std::string(limits::nameBytes, 'n');
  expectLoads(source);
  source.dim += 'n';
  expectRefused(source, "the name of dim 0 of argument 0");
  source.dim = "a\\0Ab";
  expectRefused(source, "control characters, got one with control");
  for (const char *dim : {"a,b", "a=b"}) {
    source.dim = dim;
    expectRefused(source, "expected no '=' or ',' in a name");
  }
}

TEST(Limits, shapes_and_grids) {
  Source source;
  source.rank = MLAFIX_MAX_DIMS;
  expectLoads(source);
  ++source.rank;
  expectRefused(source, "expected at most 8 dims, got 9");
  source.rank = 1;
  source.extents = limits::extents;
  expectLoads(source);
  ++source.extents;
  expectRefused(source, "expected at most 8 extents, got 9");
  source.extents = 1;
  for (const char *stride : {"-1", "-7"}) {
    source.stride = stride;
    expectRefused(source, std::string("expected strides of at least 0, or "
                                      "dynamic ones, got ") +
                              stride);
  }
}

TEST(Limits, a_kernel_twice_for_the_same_bindings) {
  CompileOptions options;
  options.emit = Emit::Unit;
  options.targets = {"x86-64"};
  options.specializations = {{{"n", "8"}}, {{"n", "16"}}, {{"n", "8"}}};
  CompileResult result = compile(Source().text(), "limits.mlir", options);
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.diagnostics.find("limits.mlir:1:1: error: expected each "
                                    "kernel once in a unit for the same "
                                    "bindings, got 'k' twice for {\"n\":8}"),
            std::string::npos)
      << result.diagnostics;
}

} // namespace
