//===- mlafix-opt.cpp - the program ---------------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Main.h"

int main(int argc, char **argv) { return mlafix_opt_main(argc, argv); }
