// Loops in what Mesa's compilers print: one short program in each language, counted by hand.
#include <string_view>

#include <gtest/gtest.h>

#include "tools/isa/disassembly.h"

namespace rondo::isa::isa_disassembly_test {
namespace {

constexpr std::string_view kAmd = R"(BB0:
	s_load_dwordx4 s[0:3], s[2:3], 0x24                         ; f4080407 fa000024
	v_mov_b32_e32 v1, 0                                         ; 7e020280
	s_branch BB2                                                ; bf820000
BB1:
	s_waitcnt vmcnt(0)                                          ; bf8c3f70
	v_fma_mix_f32 v1, v2, v3, v1 op_sel_hi:[1,0,0]              ; cc200001
	v_pk_fma_f16 v4, v2, v3, v4                                 ; cc0e0004
	v_dual_fmac_f32 v5, v2, v3 :: v_dual_mul_f32 v6, v2, v3     ; c8020005
	v_cvt_f32_u32_e32 v7, v8                                    ; 7e0e0d08
	v_add_f32_e32 v7, v7, v1                                    ; 060e0307
	(then repeated 2 times)
	v_dot4_i32_i8 v9, v2, v3, v9                                ; cc160009
	buffer_load_dwordx4 v[8:11], v6, s[20:23], 0 offen          ; e0381000
	ds_read2_b32 v[2:3], v6 offset1:1                           ; d8dc0100
	scratch_load_dword v2, off, off                             ; dc304000
	s_add_u32 s0, s0, 1                                         ; 80008100
BB2:
	s_cmp_lt_u32 s0, s4                                         ; bf0a0400
	s_cbranch_scc1 BB1                                          ; bf850000
BB3:
	v_exp_f32_e32 v1, v1                                        ; 7e024b01
	s_endpgm                                                    ; bf810000
)";

TEST(IsaDisassemblyTest, Amd) {
  const std::vector<CompiledLoop> loops = find_loops("Assembly", kAmd, 64);
  ASSERT_EQ(loops.size(), 1U);
  const CompiledLoop& loop = loops[0];
  EXPECT_EQ(loop.first_line, 6U);
  EXPECT_EQ(loop.last_line, 20U);
  EXPECT_TRUE(loop.innermost);
  EXPECT_EQ(loop.count(Kind::kMultiplyAdd), 3);  // the mixed one, the packed one, and the pair, which is one instruction
  EXPECT_EQ(loop.count(Kind::kConvert), 1);
  EXPECT_EQ(loop.count(Kind::kFloat), 3);        // the one and its two repetitions
  EXPECT_EQ(loop.count(Kind::kDot), 1);
  EXPECT_EQ(loop.multiply_adds, 1 + 2 + 2 + 4);
  EXPECT_EQ(loop.vector_instructions(), 3 + 1 + 3 + 1);
  EXPECT_EQ(loop.count(Kind::kMemory), 1);
  EXPECT_EQ(loop.count(Kind::kShared), 1);
  EXPECT_EQ(loop.count(Kind::kScratch), 1);
  EXPECT_EQ(loop.count(Kind::kScalar), 2);
  EXPECT_EQ(loop.count(Kind::kWait), 1);
  EXPECT_EQ(loop.count(Kind::kBranch), 1);
}

/// Products of matrices, as Mesa 26.1.6 prints them: a lane's share of their multiply-adds, and one instruction each.
TEST(IsaDisassemblyTest, ProductsOfMatrices) {
  const auto loop_of = [](std::string_view representation, std::string_view text, std::uint32_t lanes) {
    const std::vector<CompiledLoop> loops = find_loops(representation, text, lanes);
    EXPECT_EQ(loops.size(), 1U) << representation;
    return loops.empty() ? CompiledLoop() : loops[0];
  };
  constexpr std::string_view kWmma = "BB1:\n\tv_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]    ; cc401000\n\ts_cbranch_scc1 BB1         ; bf850000\n";
  EXPECT_EQ(loop_of("Assembly", kWmma, 32).multiply_adds, 128);
  EXPECT_EQ(loop_of("Assembly", kWmma, 64).multiply_adds, 64);
  EXPECT_EQ(loop_of("Assembly", kWmma, 32).vector_instructions(), 1);
  constexpr std::string_view kSumsInF16 = "BB1:\n\tv_wmma_f16_16x16x16_f16 v[0:3], v[8:15], v[16:23], v[0:3]    ; cc421000\n\ts_cbranch_scc1 BB1         ; bf850000\n";
  EXPECT_EQ(loop_of("Assembly", kSumsInF16, 64).multiply_adds, 64);
  constexpr std::string_view kHmma = "block 0 L0 [] -> {\n  r76..80  = hmma.m16n8k16.f32 r80..84 r88..90 r76..80\n  r20..24  = hmma.m16n8k8.f32 r40..42 r48..49 r20..24\n  bra L0\n} -> [0]\n";
  EXPECT_EQ(loop_of("NAK assembly", kHmma, 32).multiply_adds, 64 + 32);
  EXPECT_EQ(loop_of("NAK assembly", kHmma, 32).count(Kind::kMatrix), 2);
  constexpr std::string_view kDpas = "LABEL1:\ndpas.8x8(8)     g49<1>F         g41<1,1,0>F     g25<1,1,0>HF    g33<1,1,0>HF { align1 WE_all 1Q $4 };\nwhile(8)        JIP:  LABEL1                                    { align1 1Q };\n";
  EXPECT_EQ(loop_of("GEN Assembly", kDpas, 8).multiply_adds, 128);
  EXPECT_EQ(loop_of("GEN Assembly", kDpas, 8).count(Kind::kMatrix), 1);
}

constexpr std::string_view kIntel = R"(Native code for unnamed compute shader (null)
and(1)          g2<1>UD         g0<0,1,0>UD     0xffffffc0UD    { align1 WE_all 1N };
LABEL1:
cmp.ge.f0.0(16) null<1>UD       g79<8,8,1>UD    g1.2<0,1,0>UD   { align1 1H };
(+f0.0) break(16) JIP:  LABEL0        UIP:  LABEL0              { align1 1H };
mad(16)         g97<1>F         g99<8,8,1>F     g41<8,8,1>F     g15<1,1,1>F { align1 1H @4 compacted };
mul(8)          g99<1>F         g13<8,8,1>F     g43<8,8,1>F     { align1 1Q @6 compacted };
mul(16)         g99<1>D         g13<8,8,1>D     g43<8,8,1>D     { align1 1H @6 compacted };
mov(16)         g15<1>F         g3.1<32,8,4>B                   { align1 1H };
mov(16)         g15<1>F         g3<8,8,1>F                      { align1 1H };
add(1)          g11<1>D         g114<0,1,0>D    1D              { align1 WE_all 1N };
send(16)        g11UD           g79UD           nullUD          0x04805004                0x00000000
                hdc1 MsgDesc: (untyped surface read, Surface = 4, SIMD16, Mask = 0x0)  mlen 2 ex_mlen 0 rlen 8 { align1 1H @3 $9 };
send(16)        g11UD           g79UD           nullUD          0x04805004                0x00000000
                hdc1 MsgDesc: (untyped surface read, Surface = 254, SIMD16, Mask = 0xe)  mlen 2 ex_mlen 0 rlen 8 { align1 1H @3 $9 };
send(16)        g91UD           g17UD           nullUD          0x44200500                a0.1<0>UD
                ugm MsgDesc: ( load, a32, d32, V1, L1STATE_L3MOCS dst_len = 2, src0_len = 2, ss )  surface_state_index 0  { align1 $3 };
sync nop(1)                     null<0,1,0>UB                   { align1 WE_all 1N $9.src };
LABEL0:
while(16)       JIP:  LABEL1                                    { align1 1H };
)";

TEST(IsaDisassemblyTest, Intel) {
  const std::vector<CompiledLoop> loops = find_loops("GEN Assembly", kIntel, 16);
  ASSERT_EQ(loops.size(), 1U);
  const CompiledLoop& loop = loops[0];
  EXPECT_EQ(loop.first_line, 4U);
  EXPECT_EQ(loop.last_line, 20U);
  EXPECT_EQ(loop.count(Kind::kMultiplyAdd), 1);
  EXPECT_EQ(loop.count(Kind::kMultiply), 0.5);  // for 8 of the 16 invocations
  EXPECT_EQ(loop.multiply_adds, 1.5);
  EXPECT_EQ(loop.count(Kind::kInteger), 1);
  EXPECT_EQ(loop.count(Kind::kConvert), 1);
  EXPECT_EQ(loop.count(Kind::kMove), 1);
  EXPECT_EQ(loop.count(Kind::kSelect), 1);
  EXPECT_EQ(loop.count(Kind::kScalar), 1);
  EXPECT_EQ(loop.count(Kind::kMemory), 1);
  EXPECT_EQ(loop.count(Kind::kShared), 1);
  EXPECT_EQ(loop.count(Kind::kScratch), 1);
  EXPECT_EQ(loop.count(Kind::kWait), 1);
  EXPECT_EQ(loop.count(Kind::kBranch), 2);
}

constexpr std::string_view kAdreno = R"(; num_ubos:           0
@in(r0.x)	in1 (wrmask=0x7)
Native code for unnamed CL shader (null):
mov.f32f32 r8.y, c2.z
l5:
(rpt2)mad.f32 r5.w, (r)r3.w, c12.w, (r)r5.w
(sy)(ss)mul.f r1.x, r1.y, r1.z
(nop3) add.u r3.w, r2.w, 4
cov.u32f32 r48.w, c0.y
l8:
ldl.u32 r1.x, l[r2.x], 1
br p0.x, #l8
isam.v.base0 (u32)(xyzw)r4.w, r3.y, s#0, t#2
stp.u32 p[r1.x], r2.x, 1
(jp)br !p0.y, #l5
jump #l9
l9:
end
)";

TEST(IsaDisassemblyTest, AdrenoWithALoopInALoop) {
  const std::vector<CompiledLoop> loops = find_loops("IR3 Assembly", kAdreno, 64);
  ASSERT_EQ(loops.size(), 2U);  // jumps ahead are none
  EXPECT_FALSE(loops[0].innermost);
  EXPECT_EQ(loops[0].count(Kind::kMultiplyAdd), 3);
  EXPECT_EQ(loops[0].multiply_adds, 4);
  EXPECT_EQ(loops[0].count(Kind::kInteger), 1);
  EXPECT_EQ(loops[0].count(Kind::kWait), 3);
  EXPECT_EQ(loops[0].count(Kind::kConvert), 1);
  EXPECT_EQ(loops[0].count(Kind::kMemory), 1);
  EXPECT_EQ(loops[0].count(Kind::kScratch), 1);
  EXPECT_EQ(loops[0].count(Kind::kBranch), 1);
  EXPECT_EQ(loops[0].count(Kind::kShared), 0);  // it is the inner one's
  EXPECT_TRUE(loops[1].innermost);
  EXPECT_EQ(loops[1].count(Kind::kShared), 1);
  EXPECT_EQ(loops[1].count(Kind::kBranch), 1);
}

// As NAK lays blocks out: the outer loop goes back (block 3 to 1) from between the parts of the inner one (2 to 4).
constexpr std::string_view kNvidia = R"(block.u 0 L0 [] -> {
      ur0      = s2r sr[0x25]                              // delay=1 wr:0
                 bra pT L1                                 // delay=1
} -> [1]
block 1 L1 [0, 3] -> {
      r1       = ffma.ftz r2 r3 r1                         // delay=4
} -> [2]
block 2 L2 [1, 4] -> {
      r1       = ffma.ftz r2 r3 r1                         // delay=4
      r4       = hfma2 r2 r3 r4                            // delay=4
      ur3      = iadd3 ur3 0x1 rZ                          // delay=4
      r5       = ld.shared.strong.cta.b32 [r6]             // delay=2
@!p0             bra pT L4                                 // delay=1
} -> [3, 4]
block 3 L3 [2] -> {
      r2 p1    = ld.global.a64.constant.b128 [r2..4], pT   // delay=2
                 bra pT L1                                 // delay=1
} -> [1, 5]
block 4 L4 [2] -> {
                 st.local.strong.cta.b32 [r1] r5           // delay=1
@p2   r7       = idp.s8 r2 r3 r7                           // delay=1
} -> [2]
block 5 L5 [3] -> {
                 exit                                      // delay=1
} -> []
)";

TEST(IsaDisassemblyTest, NvidiaWithBlocksOfTwoLoopsMixed) {
  const std::vector<CompiledLoop> loops = find_loops("NAK assembly", kNvidia, 32);
  ASSERT_EQ(loops.size(), 2U);
  EXPECT_FALSE(loops[0].innermost);
  EXPECT_EQ(loops[0].count(Kind::kMultiplyAdd), 1);
  EXPECT_TRUE(loops[1].innermost);
  EXPECT_EQ(loops[1].count(Kind::kMultiplyAdd), 2);
  EXPECT_EQ(loops[1].multiply_adds, 1 + 2 + 4);
  EXPECT_EQ(loops[1].count(Kind::kScalar), 1);
  EXPECT_EQ(loops[1].count(Kind::kShared), 1);
  EXPECT_EQ(loops[1].count(Kind::kScratch), 1);
  EXPECT_EQ(loops[1].count(Kind::kDot), 1);
}

// What follows a loop (block 2) lies between its parts, and has a loop of its own.
TEST(IsaDisassemblyTest, WhatLiesBetweenALoopsBlocksIsNotIts) {
  constexpr std::string_view kText = R"(block 0 L0 [] -> {
                 bra pT L1                                 // delay=1
} -> [1]
block 1 L1 [0, 4] -> {
      r1       = ffma.ftz r2 r3 r1                         // delay=4
@p0              bra pT L4                                 // delay=1
} -> [2, 4]
block 2 L2 [1, 2] -> {
      r5       = ld.shared.strong.cta.b32 [r6]             // delay=2
@p1              bra pT L2                                 // delay=1
} -> [2, 3]
block 3 L3 [2] -> {
                 exit                                      // delay=1
} -> []
block 4 L4 [1] -> {
      r1       = ffma.ftz r2 r3 r1                         // delay=4
                 bra pT L1                                 // delay=1
} -> [1]
)";
  const std::vector<CompiledLoop> loops = find_loops("NAK assembly", kText, 32);
  ASSERT_EQ(loops.size(), 2U);
  EXPECT_TRUE(loops[0].innermost);
  EXPECT_EQ(loops[0].count(Kind::kMultiplyAdd), 2);
  EXPECT_EQ(loops[0].count(Kind::kShared), 0);
  EXPECT_TRUE(loops[1].innermost);
  EXPECT_EQ(loops[1].count(Kind::kShared), 1);
}

TEST(IsaDisassemblyTest, NothingIsFoundInOtherTexts) {
  EXPECT_FALSE(is_disassembly("NIR Shader(s)"));
  EXPECT_TRUE(find_loops("NIR Shader(s)", kAmd, 64).empty());
  for (const char* representation : {"Assembly", "GEN Assembly", "IR3 Assembly", "NAK assembly"}) {
    EXPECT_TRUE(is_disassembly(representation));
    for (const char* text : {"", "\n", "}", "} -> [", "} -> [7, 99999999999999999999]", "block", "(", "(rpt", "\t", "\t;", "BB1:\n\ts_branch BB1 ", "while(16", "while(16) JIP:", "while(16) JIP: LABEL", "LABEL1:", "l1:\nbr #", "@p0", "\t(then repeated 9 times)"}) {
      EXPECT_LE(find_loops(representation, text, 0).size(), 1U) << representation << ": " << text;
    }
  }
}

}  // namespace
}  // namespace rondo::isa::isa_disassembly_test
