// Launches scale_rows from a unit file, without the generated header. Usage:
// untyped scale_rows.mlafix
#include "mlafix/runtime.hpp"

#include <cstdio>

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  float x[3][4], y[3][4] = {};
  for (int i = 0; i < 12; ++i)
    x[i / 4][i % 4] = static_cast<float>(i);
  mlafix::Unit unit = mlafix::Unit::load(argv[1]);
  unit.kernel("scale_rows", "D=4")
      .launch({mlafix::Tensor::contiguous(y, MLAFIX_F32, {3, 4}),
               mlafix::Tensor::contiguous(x, MLAFIX_F32, {3, 4})},
              mlafix::cpu());
  int right = 0;
  for (int i = 0; i < 12; ++i)
    right += y[i / 4][i % 4] == 2.0f * static_cast<float>(i);
  std::printf("%d of 12 elements are right\n", right);
  return right == 12 ? 0 : 1;
}
