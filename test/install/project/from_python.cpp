// Calls a kernel that was written in Python.
#include "halve-rows.h"

#include <cstdio>

int main() {
  const float x[8] = {0, 2, 4, 6, 8, 10, 12, 14};
  float y[8] = {};
  halve_rows({y, {2, 4}}, {x, {2, 4}});
  std::printf("%g %g\n", y[1], y[7]);
}
