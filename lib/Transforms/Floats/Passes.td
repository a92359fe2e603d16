//===- Passes.td - arithmetic of floats --------------------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_FLOATS_PASSES
#define MLAFIX_TRANSFORMS_FLOATS_PASSES

include "lib/Transforms/PassOptions.td"

def NarrowRowsPass : Pass<"mlafix-narrow-rows", "::mlafix::KernelOp"> {
  let summary = "rows of 16-bit floats are masked and widened as 32-bit words, as late as possible";
  let description = [{
    If both branches of an `scf.if` widen their result, the widening moves behind the `scf.if`, so that the branches
    yield words. If a widened pack is used only in the two branches, it is widened in each branch instead. Before the
    branches it then occupies a half or a quarter of the registers, and each branch may mask it as words.

    The maximum or minimum of rows of bf16 or f16, or of their magnitudes, is computed on the narrow elements, two at
    once, and then widened. The result is one of the elements, so only the bits of a NaN may change. If later arithmetic
    uses the wide row, the row is widened at the first such use, and occupies half the registers until then. Branches
    that use the row widen it again, element by element if the target has an instruction for that. `ptxas` then does not
    recognise the result as a value that exists already, so it does not keep the wide row until the branch.

    If a lane has many packs of such rows (`packs_in_turn`) and the kernel stores rows, all ops on rows are sunk to their
    first use. Packs are then computed one after the other, and need the registers of a single pack.

    If a widened pack of bf16 or f16 is masked, the mask moves before the widening and applies to words of two elements.
    This halves the number of selections. A pack of bf16 that is an operand of arithmetic is widened with two
    instructions per word; the instruction that widens one element would take three. If fp8 is multiplied by a number
    and then masked, the mask moves before the product and applies to words of four elements. If the mask selects the
    other value, the product is with 1 instead of the number.

    LLVM narrows arithmetic between a widening and a narrowing to the narrow type if that type has enough digits.
    Between bf16 and f16 it chooses f16, which overflows at 65504, whereas bf16 reaches 3.4e38. So a kernel that narrows
    to f16 always widens bf16 by integer arithmetic, which LLVM does not recognise.

    For GPUs only: a CPU converts bf16 by integer arithmetic anyway (`mlafix-expand-math`). If `narrowWords` is 0, as it
    is from sm_100 on, only two things apply: the widening in branches, and the integer arithmetic in kernels that narrow
    to f16. LLVM's code for words takes more registers there.

    ```mlir
    // Before
    %f = arith.extf %x : vector<2xbf16> to vector<2xf32>
    %g = arith.extf %y : vector<2xbf16> to vector<2xf32>
    %max = arith.maximumf %f, %g : vector<2xf32>
    // After
    %narrow = arith.maximumf %x, %y : vector<2xbf16>
    %word = vector.bitcast %narrow : vector<2xbf16> to vector<1xi32>
    %up = arith.shli %word, %c16 : vector<1xi32>
    %first = arith.bitcast %up : vector<1xi32> to vector<1xf32>
    %upper = arith.andi %word, %cUpperHalf : vector<1xi32>
    %second = arith.bitcast %upper : vector<1xi32> to vector<1xf32>
    %max = vector.interleave %first, %second : vector<1xf32> -> vector<2xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def LowerDivisionsPass : Pass<"mlafix-lower-divisions", "::mlafix::KernelOp"> {
  let summary = "divisions become products with reciprocals, and give the same bits";
  let description = [{
    A division by a power of two that was f8E8M0FNU becomes a product with its inverse. The inverse is a power of two as
    well, so the product is exact for all numbers.

    A division by a constant above 1 with at most 20 significant bits becomes a product with the constant's inverse in
    two parts. It takes two operations instead of a dozen, has no branch, and is correctly rounded (N10). A maximum must
    ensure a lower bound of the dividend, such as 2^-114 for 448. The dividend of a scale has one.

    A division by a number that is known to be between 2^-20 and 2^20 becomes a product with the number's reciprocal and
    a correction by the remainder. It is correctly rounded, too. An example is the division by 1 + e^-2|x| in a
    hyperbolic tangent. The dividend must be a sum with a constant, so that no remainder is too small for f32.

    ```mlir
    // Before
    %most = arith.maximumf %largest, %c1e-10 : f32
    %scale = arith.divf %most, %c448 : f32
    // After
    %less = arith.mulf %most, %low : f32
    %scale = math.fma %most, %high, %less : f32
    ```

    A pack that is divided by one number is multiplied by the number's reciprocal, and each quotient is corrected by the
    remainder of its dividend. That takes three operations per element instead of a dozen, and gives the same bits.
    Packs in a block share one branch, and one reciprocal if they have the same divisor. Quotients are correctly rounded
    (N10) if the magnitude of every element is 0 or in [2^-100, 2^62] and the divisor is in [2^-64, 2^20]. If quotients
    are stored as fp8, converted to integers or added to a constant of at least 1, small ones vanish: elements may then
    be smaller, and the divisor may be up to 2^64. Otherwise each element is divided. The same happens if small
    quotients matter and there are fewer than `sharedDivisions` elements.

    ```mlir
    // Before
    %d = vector.broadcast %s : f32 to vector<2xf32>
    %q = arith.divf %x, %d : vector<2xf32>
    // After
    %q = scf.if %isInRange -> (vector<2xf32>) {
      %about = nvvm.rcp.approx.ftz.f %s : f32
      …
      %r = math.fma %about, %minusRest, %about : f32
      …
      %near = arith.mulf %x, %rs : vector<2xf32>
      %rest = math.fma %near, %d, %minusX : vector<2xf32>
      %exact = math.fma %rest, %minusRs, %near : vector<2xf32>
      scf.yield %exact : vector<2xf32>
    } else {
      %slow = arith.divf %x, %d : vector<2xf32>
      scf.yield %slow : vector<2xf32>
    }
    ```

    Two or more correctly rounded scalar reciprocals in a block are computed in two steps that are right for normal
    numbers. A reciprocal may depend on another. A single branch behind the last reciprocal checks the remainders of all
    of them. If one is too far off (for 0, subnormals, infinities, NaN, and numbers beyond 2^126), the branch computes
    all reciprocals in full, and repeats the operations between them. Other operations that need a reciprocal move
    behind the branch.

    ```mlir
    // Before
    %a = arith.divf %one, %x : f32
    %y = arith.mulf %a, %s : f32
    %b = arith.divf %one, %y : f32
    // After
    %near = nvvm.rcp.approx.ftz.f %x : f32
    …
    %a = math.fma %near, %minusRest, %near : f32
    %y = arith.mulf %a, %s : f32
    …
    %r = scf.if %areNear -> (f32) {
      scf.yield %b : f32
    } else {
      %a1 = arith.divf %one, %x : f32
      %y1 = arith.mulf %a1, %s : f32
      %b1 = arith.divf %one, %y1 : f32
      scf.yield %b1 : f32
    }
    ```

    For GPUs: a CPU divides a vector at once.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def PairRowsPass : Pass<"mlafix-pair-rows", "::mlafix::KernelOp"> {
  let summary = "rows of bf16 come apart as words of two elements";
  let description = [{
    If all results of a vector of bf16 are computed element by element and go back to bf16, the order of its elements
    does not matter. In f32, the even elements then stand before the odd ones. 32-bit words of two bf16 are split and
    joined in this order without moving elements across lanes of a register: the lower elements by a shift, the upper
    ones by a mask. For CPUs only.

    ```mlir
    // Before
    %f = arith.extf %x : vector<4xbf16> to vector<4xf32>
    // After
    %words = vector.bitcast %x : vector<4xbf16> to vector<2xi32>
    %lower = arith.shli %words, %c16 : vector<2xi32>
    %upper = arith.andi %words, %mask : vector<2xi32>
    …
    %f = vector.shuffle %even, %odd [0, 1, 2, 3] : vector<2xf32>, vector<2xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

#endif // MLAFIX_TRANSFORMS_FLOATS_PASSES
