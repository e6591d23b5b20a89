; Flash attention by hand: y = softmax(scale · q kᵀ) v, key blocks of 128, online softmax by docs/numerics.md §7.
; `$$names` are tile sizes and places, filled in by kernel.py.
;
;   r0 r1 r2 r3   Q, K, V, Y in GM (f16)       r9  r10  bytes between heads, rows of Q
;   r4  heads                                  r11 r12  bytes between heads, rows of K and of V
;   r5  queries    r6  keys                    r13 r14  bytes between heads, rows of Y
;   r7  1: causal  r8  position of query 0     r15      scale (bits of an f32)    r16  query heads that share a key head
;
; An item is a tile of queries of one head; core c takes items c, c + cores, …, heads fastest. The loop over key blocks is
; skewed: an iteration makes the scores of block t (registers r17 to r21, r26) and adds the values of the block before it
; (r22 to r25), which may belong to the item before. One more item, empty, lets the last block through.
; Scores are transposed, [keys, queries], so that the vector engine reduces over an outer axis.
;
;   r17  where Y goes      r18  position of query 0 of the tile (huge if not causal)   r19  offset of the key head
;   r20  queries           r21  keys that any of them sees                             r26  keys of this block
;   r22  queries           r23  keys of the block          r24  1: last of its item    r25  where Y goes
;
; Rings: 0 items, 1 key blocks, 2 and 3 parts of a block in the cube, 4 results.
; Tokens, src→dst and id:  load→feed 0 Q, 1 K · feed→cube 1 K, 2 P and V · cube→drain 0 S, 1 PV · drain→vector 0 S, 1 PV
;                          vector→store 0 P, 1 Y · store→feed 0 P · and back, for free slots, also feed→load 2 V and cube→feed 0 Q.
; That V is in L1 is known from K's token of the next iteration, and that Q is in L0B from the first of K.

; A token for each free slot. V and P are fed one iteration later: the first round has nothing to feed, and frees a slot all the same.
grant src=feed dst=load id=r30 n=$q_slots
grant src=feed dst=load id=r30 + 1 n=$k_slots
grant src=feed dst=load id=r30 + 2 n=$v_slots - 1
grant src=store dst=feed id=r30 n=1
grant src=feed dst=store id=r30 n=$p_slots - 1
grant src=cube dst=feed id=r30 n=$q0_slots
grant src=cube dst=feed id=r30 + 1 n=$k0_slots
grant src=cube dst=feed id=r30 + 2 n=$v0_slots
grant src=drain dst=cube id=r30 n=$s0_slots
grant src=drain dst=cube id=r30 + 1 n=$o0_slots
grant src=vector dst=drain id=r30 n=$s_slots
grant src=vector dst=drain id=r30 + 1 n=$o_slots
grant src=store dst=vector id=r30 n=$u_slots
grant src=store dst=vector id=r30 + 1 n=$y_slots

; band[$tile + x] = (x ≥ 0): entry (k, q) of a mask is band[$tile + (position of q) − (position of k)].
iota dst=r29 + $acc n2=128 + 2*$tile d2=4 td=i32 base=-$tile c2=1
vmap fn=ge dst=r29 + $band a=r29 + $acc n2=128 + 2*$tile d2=1 a2=4 td=b8 ta=i32 immb=0.0
iota dst=r29 + $least n2=$tile d2=4 td=f32
vmap fn=min dst=r29 + $least a=r29 + $least n2=$tile d2=4 a2=4 td=f32 ta=f32 immb=-3.4028234663852886e+38
iota dst=r29 + $acc n2=$tile*$d d2=4 td=f32
iota dst=r29 + $l n2=$tile d2=4 td=f32

mov rd=22 value=0
mov rd=23 value=0
mov rd=24 value=0
mov rd=25 value=0
div rd=17 a=r5 + $tile - 1 b=$tile
mov rd=17 value=r17*r4
loop count=r17 - core step=r27 add=1 ring=0
  div rd=18 a=core + i0*r27 b=r4
  mod rd=19 a=core + i0*r27 b=r4
  mov rd=18 value=$tile*r18
  mov rd=20 value=clamp(r5 - r18, $tile)
  mov rd=17 value=r3 + r19*r13 + r18*r14

  wait src=feed dst=load id=r30
  load dst=r28 + $q + ring(0, 0, $q_slots)*$q_bytes space=l1 src=r0 + r19*r9 + r18*r10 n3=r20 n4=$d esize=2 d3=2*$d s3=r10 s4=2
  set src=load dst=feed id=r30
  wait src=load dst=feed id=r30
  wait src=cube dst=feed id=r30
  feed_b dst=$q0 + ring(0, 0, $q0_slots)*$q0_bytes src=r28 + $q + ring(0, 0, $q_slots)*$q_bytes k=$d n=r20 ld=$tile pitch=2*$d trans=1 dtype=f16
  set src=feed dst=load id=r30

  div rd=19 a=r19 b=r16
  mov rd=19 value=r11*r19
  mov rd=18 value=r18 + r8 + $never - $never*r7
  min rd=21 a=r6 b=r18 + r20
  min rd=21 a=r21 b=$never*r20
  mov rd=21 value=clamp(r21, $never)
  loop count=r21 step=128 add=clamp(1 - r21, 1) ring=1
    mov rd=26 value=clamp(r21 - 128*i1, 128)

    ; S = scale · k qᵀ
    wait src=feed dst=load id=r30 + 1
    load dst=r28 + $k + ring(1, 0, $k_slots)*$k_bytes space=l1 src=r1 + r19 + 128*i1*r12 n3=r26 n4=$d esize=2 d3=2*$d s3=r12 s4=2
    set src=load dst=feed id=r30 + 1
    wait src=feed dst=load id=r30 + 2
    load dst=r28 + $v + ring(1, 0, $v_slots)*$k_bytes space=l1 src=r2 + r19 + 128*i1*r12 n3=r26 n4=$d esize=2 d3=2*$d s3=r12 s4=2
    wait src=load dst=feed id=r30 + 1
    wait src=drain dst=cube id=r30
    loop count=r26 step=$part ring=2
      wait src=cube dst=feed id=r30 + 1
      feed_a dst=$k0 + ring(2, 0, $k0_slots)*$k0_bytes src=r28 + $k + 2*$part*$d*i2 + ring(1, 0, $k_slots)*$k_bytes m=clamp(r26 - $part*i2, $part) k=$d ld=$d pitch=2*$d dtype=f16
      set src=feed dst=cube id=r30 + 1
      wait src=feed dst=cube id=r30 + 1
      mma dst=$s0 + 4*$part*$tile*i2 + ring(1, 0, $s0_slots)*$s_bytes a=$k0 + ring(2, 0, $k0_slots)*$k0_bytes b=$q0 + ring(0, 0, $q0_slots)*$q0_bytes m=clamp(r26 - $part*i2, $part) n=r20 k=$d lda=$d ldb=$tile ldc=$tile init=1 dtype=f16
      set src=cube dst=feed id=r30 + 1
    end
    set src=feed dst=load id=r30 + 1
    set src=cube dst=drain id=r30
    wait src=cube dst=drain id=r30
    wait src=vector dst=drain id=r30
    drain dst=r29 + $s + ring(1, 0, $s_slots)*$s_bytes space=ub src=$s0 + ring(1, 0, $s0_slots)*$s_bytes m=r26 n=r20 ldc=$tile pitch=4*r20 scaled=1 scale=r15 dtype=f32
    set src=drain dst=cube id=r30
    set src=drain dst=vector id=r30

    ; m' = max(m, max S), a = exp(m − m'), P = exp(S − m'), Σ P
    wait src=drain dst=vector id=r30
    vmap fn=where dst=r29 + $s + ring(1, 0, $s_slots)*$s_bytes a=r29 + $band + $tile + r18 - 128*i1 b=r29 + $s + ring(1, 0, $s_slots)*$s_bytes n0=clamp(r26 - 1 - r18 + 128*i1, 1) n1=r26 n2=r20 d1=4*r20 d2=4 a1=-1 a2=1 b1=4*r20 b2=4 td=f32 ta=b8 bimm=0 immc=-inf
    vmap fn=copy dst=r29 + $m + ring(1, -1, 2)*$vector a=r29 + $least n1=clamp(1 - i1, 1) n2=r20 d2=4 a2=4 td=f32 ta=f32
    vreduce fn=max dst=r29 + $m + ring(1, 0, 2)*$vector a=r29 + $s + ring(1, 0, $s_slots)*$s_bytes n1=r26 n2=r20 d2=4 a1=4*r20 a2=4 td=f32 ta=f32
    vmap fn=max dst=r29 + $m + ring(1, 0, 2)*$vector a=r29 + $m + ring(1, 0, 2)*$vector b=r29 + $m + ring(1, -1, 2)*$vector n1=clamp(r26, 1) n2=r20 d2=4 a2=4 b2=4 td=f32 ta=f32 bimm=0
    vmap fn=sub dst=r29 + $s + ring(1, 0, $s_slots)*$s_bytes a=r29 + $s + ring(1, 0, $s_slots)*$s_bytes b=r29 + $m + ring(1, 0, 2)*$vector n1=r26 n2=r20 d1=4*r20 d2=4 a1=4*r20 a2=4 b2=4 td=f32 ta=f32 bimm=0
    vmap fn=exp dst=r29 + $s + ring(1, 0, $s_slots)*$s_bytes a=r29 + $s + ring(1, 0, $s_slots)*$s_bytes n1=r26 n2=r20 d1=4*r20 d2=4 a1=4*r20 a2=4 td=f32 ta=f32
    wait src=store dst=vector id=r30
    vmap fn=copy dst=r29 + $u + ring(1, 0, $u_slots)*$p_bytes a=r29 + $s + ring(1, 0, $s_slots)*$s_bytes n1=r26 n2=r20 d1=2*r20 d2=2 a1=4*r20 a2=4 td=f16 ta=f32
    set src=vector dst=store id=r30
    vreduce fn=sum dst=r29 + $sum + ring(1, 0, 2)*$vector a=r29 + $s + ring(1, 0, $s_slots)*$s_bytes n1=r26 n2=r20 d2=4 a1=4*r20 a2=4 td=f32 ta=f32
    set src=vector dst=drain id=r30
    vmap fn=sub dst=r29 + $a + ring(1, 0, 2)*$vector a=r29 + $m + ring(1, -1, 2)*$vector b=r29 + $m + ring(1, 0, 2)*$vector n1=clamp(r26, 1) n2=r20 d2=4 a2=4 b2=4 td=f32 ta=f32 bimm=0
    vmap fn=exp dst=r29 + $a + ring(1, 0, 2)*$vector a=r29 + $a + ring(1, 0, 2)*$vector n1=clamp(r26, 1) n2=r20 d2=4 a2=4 td=f32 ta=f32
    wait src=vector dst=store id=r30
    wait src=feed dst=store id=r30
    move dst=r28 + $p + ring(1, 0, $p_slots)*$p_bytes src=r29 + $u + ring(1, 0, $u_slots)*$p_bytes n1=r26 n2=r20 esize=2 d1=2*r20 s1=2*r20
    set src=store dst=vector id=r30
    set src=store dst=feed id=r30

    ; the block before: P v
    wait src=store dst=feed id=r30
    wait src=drain dst=cube id=r30 + 1
    loop count=r23 step=$part ring=3
      wait src=cube dst=feed id=r30 + 2
      feed_a dst=$p0 + ring(3, 0, $v0_slots)*$p0_bytes src=r28 + $p + 2*$part*i2*r22 + ring(1, -1, $p_slots)*$p_bytes m=r22 k=clamp(r23 - $part*i2, $part) ld=$part pitch=2*r22 trans=1 dtype=f16
      feed_b dst=$v0 + ring(3, 0, $v0_slots)*$v0_bytes src=r28 + $v + 2*$part*$d*i2 + ring(1, -1, $v_slots)*$k_bytes k=clamp(r23 - $part*i2, $part) n=$d ld=$d16 pitch=2*$d dtype=f16
      set src=feed dst=cube id=r30 + 2
      wait src=feed dst=cube id=r30 + 2
      mma dst=$o0 + ring(1, 0, $o0_slots)*$o0_bytes a=$p0 + ring(3, 0, $v0_slots)*$p0_bytes b=$v0 + ring(3, 0, $v0_slots)*$v0_bytes m=r22 n=$d k=clamp(r23 - $part*i2, $part) lda=$part ldb=$d16 ldc=$d16 init=clamp(1 - i2, 1) dtype=f16
      set src=cube dst=feed id=r30 + 2
    end
    set src=feed dst=store id=r30
    set src=feed dst=load id=r30 + 2
    set src=cube dst=drain id=r30 + 1
    wait src=cube dst=drain id=r30 + 1
    wait src=vector dst=drain id=r30 + 1
    drain dst=r29 + $o + ring(1, 0, $o_slots)*$o_bytes space=ub src=$o0 + ring(1, 0, $o0_slots)*$o0_bytes m=r22 n=clamp($d*r23, $d) ldc=$d16 pitch=4*$d dtype=f32
    set src=drain dst=cube id=r30 + 1
    set src=drain dst=vector id=r30 + 1

    ; l = l·a + Σ P, acc = acc·a + P v
    wait src=drain dst=vector id=r30 + 1
    vmap fn=affine dst=r29 + $l a=r29 + $l b=r29 + $a + ring(1, -1, 2)*$vector c=r29 + $sum + ring(1, -1, 2)*$vector n1=clamp(r23, 1) n2=r22 d2=4 a2=4 b2=4 c2=4 td=f32 ta=f32 bimm=0 cimm=0
    vmap fn=affine dst=r29 + $acc a=r29 + $acc b=r29 + $a + ring(1, -1, 2)*$vector c=r29 + $o + ring(1, 0, $o_slots)*$o_bytes n0=clamp(r23, 1) n1=r22 n2=$d d1=4*$d d2=4 a1=4*$d a2=4 b1=4 c1=4*$d c2=4 td=f32 ta=f32 bimm=0 cimm=0
    set src=vector dst=drain id=r30 + 1

    ; behind the last block of an item: y = acc ÷ l, where l = 0 stands for no keys (acc is +0); then both start anew
    loop count=r24 ring=4
      vmap fn=eq dst=r29 + $empty a=r29 + $l n2=r22 d2=1 a2=4 td=b8 ta=f32 immb=0.0
      vmap fn=where dst=r29 + $l a=r29 + $empty c=r29 + $l n2=r22 d2=4 a2=1 c2=4 td=f32 ta=b8 immb=1.0 cimm=0
      wait src=store dst=vector id=r30 + 1
      vmap fn=div dst=r29 + $y + ring(4, 0, $y_slots)*$y_bytes a=r29 + $acc b=r29 + $l n1=r22 n2=$d d1=2*$d d2=2 a1=4*$d a2=4 b1=4 td=f16 ta=f32 bimm=0
      set src=vector dst=store id=r30 + 1
      iota dst=r29 + $acc n2=$tile*$d d2=4 td=f32
      iota dst=r29 + $l n2=$tile d2=4 td=f32
      wait src=vector dst=store id=r30 + 1
      store dst=r25 src=r29 + $y + ring(4, 0, $y_slots)*$y_bytes space=ub n3=r22 n4=$d esize=2 d3=r14 d4=2 s3=2*$d
      set src=store dst=vector id=r30 + 1
    end
    mov rd=22 value=r20
    mov rd=23 value=r26
    mov rd=24 value=clamp(129 + 128*i1 - r21, 1)
    mov rd=25 value=r17
  end
  set src=cube dst=feed id=r30
end

; What was granted comes back.
loop count=$q_slots ring=5
  wait src=feed dst=load id=r30
end
loop count=$k_slots ring=5
  wait src=feed dst=load id=r30 + 1
end
loop count=$v_slots - 1 ring=5
  wait src=feed dst=load id=r30 + 2
end
wait src=store dst=feed id=r30
loop count=$p_slots - 1 ring=5
  wait src=feed dst=store id=r30
end
loop count=$q0_slots ring=5
  wait src=cube dst=feed id=r30
end
loop count=$k0_slots ring=5
  wait src=cube dst=feed id=r30 + 1
end
loop count=$v0_slots ring=5
  wait src=cube dst=feed id=r30 + 2
end
loop count=$s0_slots ring=5
  wait src=drain dst=cube id=r30
end
loop count=$o0_slots ring=5
  wait src=drain dst=cube id=r30 + 1
end
loop count=$s_slots ring=5
  wait src=vector dst=drain id=r30
end
loop count=$o_slots ring=5
  wait src=vector dst=drain id=r30 + 1
end
loop count=$u_slots ring=5
  wait src=store dst=vector id=r30
end
loop count=$y_slots ring=5
  wait src=store dst=vector id=r30 + 1
end
