// The address of a load is computed before the wait for the preceding grid. The first threads of the grid also prefetch
// the row at that address before the wait, if the launch says that all inputs of the kernel are in the memory of its
// own device.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(llvm.func(mlafix-overlap-grids))" | FileCheck %s --check-prefixes=CHECK,MANY
// Each thread prefetches two rows of 16 bytes, so the first 1 MB belongs to 32768 threads.
// RUN: sed 's/early_bytes = 2883584, early_threads = 40960/early_bytes = 1048576, early_threads = 1/' %s | %mlafix-opt --pass-pipeline="builtin.module(llvm.func(mlafix-overlap-grids))" | FileCheck %s --check-prefixes=CHECK,FEW
// If the plan says `early_bytes = 0`, nothing is prefetched. The wait still comes after the addresses.
// RUN: sed 's/early_bytes = 2883584/early_bytes = 0/' %s | %mlafix-opt --pass-pipeline="builtin.module(llvm.func(mlafix-overlap-grids))" | FileCheck %s --check-prefix=NONE --implicit-check-not=prefetch.global
// NONE: llvm.ptrtoint
// NONE: griddepcontrol.wait

#plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 16>, early_bytes = 2883584, early_threads = 40960, early_pack_bytes = 16, early_conditions = 4, early_first_packs = 8>
#first = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 16>, early_bytes = 2883584, early_threads = 40960, early_pack_bytes = 16, early_conditions = 4, early_first_packs = 2>
module {
  // CHECK-LABEL: llvm.func @copy(
  // CHECK-SAME: %{{.*}}: i1, %[[PARAM:.*]]: i32)
  // CHECK-DAG: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32) : i32
  // CHECK-DAG: %[[LOCAL:.*]] = llvm.icmp "ne" %[[PARAM]], %[[ZERO]]
  llvm.func @copy(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %i: i64, %p: i1) attributes {mlafix.plan = #plan} {
    // CHECK: %[[A:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}]
    // CHECK: %[[AT:.*]] = llvm.ptrtoint %[[A]]
    // CHECK: %[[B:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}]
    // CHECK: llvm.or
    // MANY: llvm.mlir.constant(90112 : i32) : i32
    // FEW: llvm.mlir.constant(32768 : i32) : i32
    // CHECK: %[[FIRST:.*]] = llvm.icmp "ult"
    // CHECK: %[[EARLY:.*]] = arith.select %[[FIRST]], %[[LOCAL]], %{{.*}} : i1
    // CHECK: scf.if %[[EARLY]]
    // CHECK-NEXT: llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];"{{.*}} %[[A]]
    // CHECK-NEXT: llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];"{{.*}} %[[B]]
    // An `exit` that is never taken needs the addresses, so ptxas computes them before the wait.
    // CHECK: llvm.inline_asm has_side_effects "{{.*}}mov.u32 threads, %ntid.x;{{.*}}or.b64 some, some, $0;{{.*}}@none exit;{{.*}}griddepcontrol.wait;
    // CHECK-NOT: llvm.getelementptr
    // CHECK: llvm.load %[[A]]
    // CHECK: llvm.load %[[B]]
    nvvm.griddepcontrol wait
    %a = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %v = llvm.load %a : !llvm.ptr<1> -> vector<8xbf16>
    %b = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %w = llvm.load %b : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %v, %b : vector<8xbf16>, !llvm.ptr<1>
    llvm.store %w, %a : vector<8xbf16>, !llvm.ptr<1>
    llvm.return
  }

  // The packs of a row have a constant distance, so one address is enough. Both packs are prefetched.
  // CHECK-LABEL: llvm.func @packs
  // CHECK-COUNT-1: llvm.ptrtoint
  // CHECK-NOT: {{llvm.ptrtoint|llvm.or}}
  // CHECK-COUNT-2: prefetch.global.L2
  // CHECK: @none exit;{{.*}}griddepcontrol.wait
  // Two rows have a distance that is not constant, so both addresses are needed.
  // CHECK-LABEL: llvm.func @rows
  // CHECK-COUNT-2: llvm.ptrtoint
  llvm.func @packs(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %row: i64, %number: i32) attributes {mlafix.plan = #plan} {
    nvvm.griddepcontrol wait
    %lane = arith.index_castui %number : i32 to index
    %c128 = arith.constant 128 : i64
    %c64 = arith.constant 64 : index
    %start = arith.muli %row, %c128 : i64
    %first = arith.index_cast %lane : index to i64
    %i = arith.addi %start, %first : i64
    %a = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %v = llvm.load %a : !llvm.ptr<1> -> vector<8xbf16>
    %again = arith.muli %row, %c128 : i64
    %other = arith.addi %lane, %c64 : index
    %second = arith.index_cast %other : index to i64
    %j = arith.addi %again, %second : i64
    %b = llvm.getelementptr %x[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %w = llvm.load %b : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %v, %y : vector<8xbf16>, !llvm.ptr<1>
    llvm.store %w, %y : vector<8xbf16>, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @rows(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %i: i64, %pitch: i64) attributes {mlafix.plan = #plan} {
    nvvm.griddepcontrol wait
    %a = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %v = llvm.load %a : !llvm.ptr<1> -> vector<8xbf16>
    %j = arith.addi %i, %pitch : i64
    %b = llvm.getelementptr %x[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %w = llvm.load %b : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %v, %y : vector<8xbf16>, !llvm.ptr<1>
    llvm.store %w, %y : vector<8xbf16>, !llvm.ptr<1>
    llvm.return
  }

  // If a thread has `early_first_packs` packs or more, the prefetches come before all ops that their addresses do not
  // need. In @known_late, the addresses need a loaded value, so the prefetches come after its load.
  // CHECK-LABEL: llvm.func @many
  // CHECK-NOT: {{arith.divsi|llvm.store|llvm.ptrtoint}}
  // CHECK-COUNT-2: prefetch.global.L2
  // CHECK: arith.divsi
  // CHECK: llvm.store %{{.*}}, %arg2
  // CHECK-COUNT-2: llvm.ptrtoint
  // CHECK: griddepcontrol.wait
  // CHECK-LABEL: llvm.func @known_late
  // CHECK: llvm.load %arg2
  // CHECK-COUNT-2: prefetch.global.L2
  llvm.func @many(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %z: !llvm.ptr<3>, %i: i64, %pitch: i64) attributes {mlafix.plan = #first} {
    %other = arith.divsi %i, %pitch : i64
    llvm.store %other, %z : i64, !llvm.ptr<3>
    nvvm.griddepcontrol wait
    %a = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %v = llvm.load %a : !llvm.ptr<1> -> vector<8xbf16>
    %j = arith.addi %i, %pitch : i64
    %b = llvm.getelementptr %x[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %w = llvm.load %b : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %v, %y : vector<8xbf16>, !llvm.ptr<1>
    llvm.store %w, %y : vector<8xbf16>, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @known_late(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %z: !llvm.ptr<3>, %i: i64) attributes {mlafix.plan = #first} {
    %pitch = llvm.load %z : !llvm.ptr<3> -> i64
    nvvm.griddepcontrol wait
    %a = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %v = llvm.load %a : !llvm.ptr<1> -> vector<8xbf16>
    %j = arith.addi %i, %pitch : i64
    %b = llvm.getelementptr %x[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %w = llvm.load %b : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %v, %y : vector<8xbf16>, !llvm.ptr<1>
    llvm.store %w, %y : vector<8xbf16>, !llvm.ptr<1>
    llvm.return
  }

  // An address that depends on a load stays after the wait.
  // CHECK-LABEL: llvm.func @chased
  llvm.func @chased(%x: !llvm.ptr<1>, %places: !llvm.ptr<1>, %i: i64) attributes {mlafix.plan = #plan} {
    // CHECK: llvm.getelementptr
    // CHECK: @none exit;{{.*}}griddepcontrol.wait
    // CHECK: %[[PLACE:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> i64
    // CHECK: llvm.getelementptr %{{.*}}[%[[PLACE]]]
    nvvm.griddepcontrol wait
    %at = llvm.getelementptr %places[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
    %place = llvm.load %at : !llvm.ptr<1> -> i64
    %a = llvm.getelementptr %x[%place] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %v = llvm.load %a : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %v, %x : vector<8xbf16>, !llvm.ptr<1>
    llvm.return
  }

  // A row that is loaded in two places under two conditions is prefetched if either is true, and its bytes count once.
  // CHECK-LABEL: llvm.func @either
  // CHECK: arith.ori
  // MANY: llvm.mlir.constant(180224 : i32) : i32
  // CHECK-COUNT-1: prefetch.global.L2
  // CHECK-NOT: prefetch
  // CHECK: griddepcontrol.wait
  llvm.func @either(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %i: i64, %isSmall: i1, %live: !llvm.ptr<1>) attributes {mlafix.plan = #plan} {
    %zeros = arith.constant dense<0.0> : vector<8xbf16>
    %true = arith.constant true
    %isLarge = arith.xori %isSmall, %true : i1
    nvvm.griddepcontrol wait
    %a = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %mask = vector.broadcast %isSmall : i1 to vector<8xi1>
    %v = llvm.intr.masked.load %a, %mask, %zeros {alignment = 16 : i32} : (!llvm.ptr<1>, vector<8xi1>, vector<8xbf16>) -> vector<8xbf16>
    llvm.store %v, %y : vector<8xbf16>, !llvm.ptr<1>
    scf.if %isLarge {
      %b = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
      %w = llvm.load %b : !llvm.ptr<1> -> vector<8xbf16>
      llvm.store %w, %y : vector<8xbf16>, !llvm.ptr<1>
    }
    llvm.return
  }

  // In a kernel without a load, the wait is not moved.
  // CHECK-LABEL: llvm.func @nothing()
  // CHECK-NEXT: nvvm.griddepcontrol wait
  llvm.func @nothing() attributes {mlafix.plan = #plan} {
    nvvm.griddepcontrol wait
    llvm.return
  }

  // The description of a code version lists the parameter `local`. A version that prefetches nothing (@store) has no
  // such parameter.
  // CHECK-LABEL: llvm.func @version(
  // CHECK-SAME: %{{.*}}: !llvm.ptr<1>, %{{.*}}: i64, %{{.*}}: i32)
  // CHECK-SAME: params = [<pointer, arg = 0>, <scalar, arg = 1>, <local>]
  // CHECK: inline_asm has_side_effects "prefetch.global.L2 [$0];"
  llvm.func @version(%x: !llvm.ptr<1>, %i: i64) attributes {mlafix.plan = #plan, mlafix.variant = #mlafix.variant<"version", guards = [],
      params = [<pointer, arg = 0>, <scalar, arg = 1>], geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 16, threads = 256, least_threads = 128>,
      layout = <lanes = 16, packs = 1, pack = 8, rows = 1>, dependent_launch = true>} {
    nvvm.griddepcontrol wait
    %a = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %v = llvm.load %a : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %v, %x : vector<8xbf16>, !llvm.ptr<1>
    llvm.return
  }

  // If the plan has `early_line_bytes`, the first of the eight lanes that load a line of 128 bytes prefetches the line.
  // CHECK-LABEL: llvm.func @plain(
  // CHECK: inline_asm has_side_effects "{{.*}}and.b32 lane, lane, 7;{{.*}}setp.eq.u32 first, lane, 0;{{.*}}@first prefetch.global.L2 [$0];
  llvm.func @plain(%x: !llvm.ptr<1>, %i: i64) attributes {mlafix.plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 16>, early_bytes = 2883584, early_threads = 40960, early_pack_bytes = 16, early_line_bytes = 128>, mlafix.variant = #mlafix.variant<"plain", guards = [],
      params = [<pointer, arg = 0>, <scalar, arg = 1>], geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 16, threads = 256, least_threads = 256>,
      layout = <lanes = 16, packs = 1, pack = 8, rows = 1>, dependent_launch = true>} {
    nvvm.griddepcontrol wait
    %a = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %v = llvm.load %a : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %v, %x : vector<8xbf16>, !llvm.ptr<1>
    llvm.return
  }

  // Twelve lanes are not a multiple of eight, so two rows share a line, and every lane prefetches.
  // CHECK-LABEL: llvm.func @shared(
  // CHECK: inline_asm has_side_effects "prefetch.global.L2 [$0];"
  llvm.func @shared(%x: !llvm.ptr<1>, %i: i64) attributes {mlafix.plan = #mlafix.plan<layout = <lanes = 12, packs = 1, pack = 8, rows = 16>, early_bytes = 2883584, early_threads = 40960, early_pack_bytes = 16, early_line_bytes = 128>, mlafix.variant = #mlafix.variant<"shared", guards = [],
      params = [<pointer, arg = 0>, <scalar, arg = 1>], geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 16, threads = 192, least_threads = 192>,
      layout = <lanes = 12, packs = 1, pack = 8, rows = 1>, dependent_launch = true>} {
    nvvm.griddepcontrol wait
    %a = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %v = llvm.load %a : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %v, %x : vector<8xbf16>, !llvm.ptr<1>
    llvm.return
  }

  // The lower bound of a loop is computed before the wait, although its upper bound is loaded.
  // CHECK-LABEL: llvm.func @open(
  // CHECK: arith.muli
  // CHECK: griddepcontrol.wait
  llvm.func @open(%x: !llvm.ptr<1>, %n: !llvm.ptr<1>, %i: i64) attributes {mlafix.plan = #plan} {
    nvvm.griddepcontrol wait
    %c4 = arith.constant 4 : index
    %number = arith.index_cast %i : i64 to index
    %begin = arith.muli %number, %c4 : index
    %count = llvm.load %n : !llvm.ptr<1> -> i64
    %end = arith.index_cast %count : i64 to index
    scf.for %k = %begin to %end step %c4 {
      %at = arith.index_cast %k : index to i64
      %a = llvm.getelementptr %x[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
      %v = llvm.load %a : !llvm.ptr<1> -> vector<8xbf16>
      llvm.store %v, %a : vector<8xbf16>, !llvm.ptr<1>
    }
    llvm.return
  }

  // CHECK-LABEL: llvm.func @store(
  // CHECK-SAME: %{{.*}}: !llvm.ptr<1>, %{{.*}}: vector<8xbf16>)
  // CHECK-SAME: params = [<pointer, arg = 0>, <scalar, arg = 1>],
  llvm.func @store(%x: !llvm.ptr<1>, %v: vector<8xbf16>) attributes {mlafix.plan = #plan, mlafix.variant = #mlafix.variant<"store", guards = [],
      params = [<pointer, arg = 0>, <scalar, arg = 1>], geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 16, threads = 256, least_threads = 128>,
      layout = <lanes = 16, packs = 1, pack = 8, rows = 1>, dependent_launch = true>} {
    nvvm.griddepcontrol wait
    llvm.store %v, %x : vector<8xbf16>, !llvm.ptr<1>
    llvm.return
  }
}
