//===- ThreadStack.h - Room on a thread's stack -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_THREADSTACK_H
#define MLAFIX_RUNTIME_THREADSTACK_H

#include <cstddef>

namespace mlafix::runtime {

/// Calls body(context), which needs `bytes` of stack. The call runs on this
/// thread if its stack has room, else on a new thread. Returns when the call is
/// done. Returns false, without a call, if the system refuses the new thread.
bool callWithStack(size_t bytes, void (*body)(void *), void *context);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_THREADSTACK_H
