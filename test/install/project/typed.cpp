// Calls scale_rows from the typed header for C++, on a whole tensor and on a
// part of one.
#include "scale.h"

#include <cstdio>

int main() {
  float x[12], y[12] = {}, wide[24] = {}, z[12] = {};
  for (int i = 0; i < 12; ++i)
    x[i] = wide[i / 4 * 8 + i % 4] = static_cast<float>(i);
  scale_rows({y, {3, 4}}, {x, {3, 4}});
  int right = 0;
  for (int i = 0; i < 12; ++i)
    right += y[i] == 2.0f * static_cast<float>(i);

  // The left half of `wide`, whose rows are eight elements apart.
  mlafix::Bound bound = scale_rows_bind({z, {3, 4}}, {wide, {3, 4}, {8, 1}});
  bound.launch();
  for (int i = 0; i < 12; ++i)
    if (z[i] != y[i])
      return 1;

  try {
    scale_rows({y, {2, 4}}, {x, {3, 4}});
    return 1;
  } catch (const mlafix::Error &error) {
    std::printf("%s\n", error.what());
  }
  std::printf("%d of 12 elements are right\n", right);
  return right == 12 ? 0 : 1;
}
