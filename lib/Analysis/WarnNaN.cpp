//===- WarnNaN.cpp - warns of NaN that empty rows cause -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/EmptyCases.h"
#include "lib/Analysis/Passes.h"

#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-warn-nan"

namespace mlafix {
#define GEN_PASS_DEF_WARNNANPASS
#include "lib/Analysis/Passes.h.inc"
} // namespace mlafix

using namespace mlafix;

std::string MadeNaN::message() const {
  return "expected no NaN where no input is NaN, got " + operation + " for " +
         where +
         " (an empty row); merge the states (load_state, merge, store_state), "
         "or choose another value for empty rows (where, arith.select)";
}

namespace {
class WarnNaNPass : public mlafix::impl::WarnNaNPassBase<WarnNaNPass> {
public:
  void runOnOperation() override {
    for (const MadeNaN &made : findMadeNaNs(getOperation())) {
      LDBG() << *made.op << ": NaN for " << made.where;
      mlir::emitWarning(made.op->getLoc()) << made.message();
    }
    markAllAnalysesPreserved();
  }
};
} // namespace
