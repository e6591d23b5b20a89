// Mistakes are answered by one line that says the rule and what was found.

// RUN: stepwell-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: npu.fill: dst lies in l1 (found a buffer of ub)
npu.kernel @memory(gm) l1=0 ub=0 ids=0 slots=1 {
  %t = npu.buffer ub 64 x 1
  npu.fill dst=%t space=l1 n2=1 esize=1
}

// -----

// CHECK: npu.fill: pattern is an address (found ub where there is none)
npu.kernel @place(gm) l1=0 ub=0 ids=0 slots=1 {
  %t = npu.buffer ub 64 x 1
  npu.fill dst=r29 space=ub n2=1 esize=1 pattern=%t
}

// -----

// CHECK: npu.fill: dst names a slot of at most 2 iterations ago (found 3)
npu.kernel @ago(gm) l1=0 ub=0 ids=0 slots=1 {
  npu.loop count=3 {
    %t = npu.buffer ub 64 x 2
    npu.fill dst=%t[-3] space=ub n2=1 esize=1
  }
}

// -----

// CHECK: npu.fill: n2: i1 is no loop around this row (found 4*i1)
npu.kernel @index(gm) l1=0 ub=0 ids=0 slots=1 {
  npu.loop count=3 {
    npu.fill dst=r28 space=l1 n2=4*i1 esize=1
  }
}

// -----

// CHECK: npu.buffer: the memory is one of l1, l0a, l0b, l0c, ub (found gm)
npu.kernel @gm(gm) l1=0 ub=0 ids=0 slots=1 {
  %t = npu.buffer gm 64 x 1
}

// -----

// CHECK: npu.buffer: at least 1 byte and 1 to 8 slots (found 64 x 9)
npu.kernel @slots(gm) l1=0 ub=0 ids=0 slots=1 {
  %t = npu.buffer ub 64 x 9
}

// -----

// CHECK: npu.kernel: an argument is gm or index (found l1)
npu.kernel @argument(l1) l1=0 ub=0 ids=0 slots=1 {
}

// -----

// CHECK: npu.loop: loops nest at most 5 deep (found 6)
npu.kernel @depth() l1=0 ub=0 ids=0 slots=1 {
  npu.loop count=1 {
    npu.loop count=1 {
      npu.loop count=1 {
        npu.loop count=1 {
          npu.loop count=1 {
            npu.loop count=1 {
            }
          }
        }
      }
    }
  }
}
