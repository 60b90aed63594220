// A product of float32 matrices on the tiles of a processor (Intel AMX), as exact as in float32.
//
// Tiles multiply bfloat16, eight bits of significand, sixteen times as fast as vectors multiply float32, and sum in
// float32. A float32 is the exact sum of three bfloat16, x = x0 + x1 + x2, each 2^-8 of the one before it. Of the nine
// products in (a0 + a1 + a2) * (b0 + b1 + b2) the three that are 2^-24 of the first or less are left out (Henry, Tang,
// Heinecke 2019, arXiv:1904.06376).
//
// Included into the code of a compiled step; see products.py.
#pragma once
#include "matrices.h"

namespace rldsl_tiles {

using rldsl_matrices::Matrix;
using rldsl_matrices::Room;

using Word = uint16_t;  // a bfloat16

constexpr int64_t SIDE = 16;             // rows of a tile; also the columns of a tile of float32
constexpr int64_t DEPTH = 32;            // bfloat16 of a row
constexpr int64_t TILE = SIDE * DEPTH;   // bfloat16 of a tile
constexpr int64_t PARTS = 3;             // bfloat16 of a float32
constexpr int64_t PANEL = 32;            // rows of the left matrix that are worked on at a time ...
constexpr int64_t SLICE = 128;           // ... so many columns of them at a time: both fit into the nearest cache

// Packed, a matrix of `outer` rows (of the left one) or columns (of the right one) is [outer / SIDE][depth / DEPTH] tiles
// of each part in turn. In a tile of the left matrix a row is a row, in one of the right matrix it is a pair of rows.

struct alignas(64) Tiles {
  uint8_t palette = 1, start = 0, unused[14] = {};
  uint16_t bytes[16] = {64, 64, 64};
  uint8_t rows[16] = {16, 16, 16};
};

// Three tiles, not all eight: the fewer are in use, the more loads may overtake, above all while another process runs on
// the same core.
constexpr Tiles TILES;
#define SET_TILES() asm volatile("ldtilecfg %0" ::"m"(TILES))
#define RELEASE_TILES() asm volatile("tilerelease" ::: "memory")
#define CLEAR_SUM() asm volatile("tilezero %%tmm0" ::: "memory")
#define LOAD(tile, from, stride) asm volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"(stride) : "memory")
#define STORE_SUM(to, stride) asm volatile("tilestored %%tmm0, (%0,%1,1)" ::"r"(to), "r"(stride) : "memory")
#define ADD_PRODUCT() asm volatile("tdpbf16ps %%tmm2, %%tmm1, %%tmm0" ::: "memory")

FAST inline void split(__m512 x, __m512i parts[PARTS]) {
  const __m512i upper = _mm512_set1_epi32(0xFFFF0000);
  for (int part = 0; part < PARTS - 1; part++) {
    parts[part] = _mm512_and_si512(_mm512_castps_si512(x), upper);
    x = _mm512_sub_ps(x, _mm512_castsi512_ps(parts[part]));
  }
  parts[PARTS - 1] = _mm512_castps_si512(x);
}

FAST inline void put(const __m512i parts[PARTS], int row, Word* tiles) {
  for (int part = 0; part < PARTS; part++) _mm512_store_si512(tiles + part * TILE + row * DEPTH, parts[part]);
}

// A row of a tile is what lies side by side along the depth.
FAST inline void put_rows(const float* x, int64_t stride, Word* tiles) {
  const __m512i upper = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27, 25,
                                         23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  for (int row = 0; row < SIDE; row++, x += stride) {
    __m512i first[PARTS], second[PARTS];
    split(_mm512_loadu_ps(x), first);
    split(_mm512_loadu_ps(x + SIDE), second);
    for (int part = 0; part < PARTS; part++)
      first[part] = _mm512_permutex2var_epi16(first[part], upper, second[part]);
    put(first, row, tiles);
  }
}

// A row of a tile is a pair of rows, whose columns lie side by side.
FAST inline void put_pairs(const float* x, int64_t stride, Word* tiles) {
  const __m512i upper = _mm512_set1_epi32(0xFFFF0000);
  for (int row = 0; row < SIDE; row++, x += 2 * stride) {
    __m512i even[PARTS], odd[PARTS];
    split(_mm512_loadu_ps(x), even);
    split(_mm512_loadu_ps(x + stride), odd);
    for (int part = 0; part < PARTS; part++)
      even[part] = _mm512_or_si512(_mm512_and_si512(odd[part], upper), _mm512_srli_epi32(even[part], 16));
    put(even, row, tiles);
  }
}

// Makes a tile of rows one of pairs, and back: its 16 x 16 pairs of words change places across the diagonal.
FAST inline void turn(Word* tile) {
  __m512i rows[16];
  for (int i = 0; i < 16; i++) rows[i] = _mm512_load_si512(tile + i * DEPTH);
  rldsl_matrices::transpose(rows);
  for (int i = 0; i < 16; i++) _mm512_store_si512(tile + i * DEPTH, rows[i]);
}

// SIDE rows of the left matrix, or as many columns of the right one.
FAST inline void pack(Matrix x, int64_t outer, int64_t depth, bool pairs, Word* tiles) {
  const bool along = x.depth_stride == 1;
  for (int64_t k = 0; k < depth; k += DEPTH, tiles += PARTS * TILE) {
    if (along)
      put_rows(x.from(outer, k), x.outer_stride, tiles);
    else
      put_pairs(x.from(outer, k), x.depth_stride, tiles);
    if (along == pairs)
      for (int part = 0; part < PARTS; part++) turn(tiles + part * TILE);
  }
}

// Adds the product of packed rows and columns to a tile of the result.
FAST inline void add_tile(const Word* a, const Word* b, int64_t depth, float* c, int64_t stride, bool first) {
  const int64_t row = SIDE * sizeof(float), result_row = stride * sizeof(float);
  if (first)
    CLEAR_SUM();
  else
    LOAD(0, c, result_row);
  for (; depth > 0; depth -= DEPTH, a += PARTS * TILE, b += PARTS * TILE) {
    LOAD(1, a, row);
    LOAD(2, b + 2 * TILE, row);
    ADD_PRODUCT();  // a0 * b2
    LOAD(2, b + TILE, row);
    ADD_PRODUCT();  // a0 * b1
    LOAD(1, a + TILE, row);
    ADD_PRODUCT();  // a1 * b1
    LOAD(2, b, row);
    ADD_PRODUCT();  // a1 * b0
    LOAD(1, a + 2 * TILE, row);
    ADD_PRODUCT();  // a2 * b0
    LOAD(1, a, row);
    ADD_PRODUCT();  // a0 * b0
  }
  STORE_SUM(c, result_row);
}

// c = a @ b, [rows, depth] by [depth, columns], c contiguous; rows by PANEL, columns by SIDE, the depth by DEPTH.
FAST inline void multiply(Matrix a, Matrix b, const float*, float* c, int64_t rows, int64_t columns, int64_t depth) {
  static thread_local Room<Word> left, right;
  const bool several = omp_get_max_threads() > 1;
  Word* const right_tiles = right.of(PARTS * columns * depth);
#pragma omp parallel for if (several)
  for (int64_t j = 0; j < columns; j += SIDE) pack(b, j, depth, true, right_tiles + PARTS * depth * j);
#pragma omp parallel for if (several)
  for (int64_t i = 0; i < rows; i += PANEL) {
    Word* const left_tiles = left.of(PARTS * PANEL * depth);
    for (int64_t r = 0; r < PANEL; r += SIDE) pack(a, i + r, depth, false, left_tiles + PARTS * depth * r);
    SET_TILES();
    for (int64_t k = 0; k < depth; k += SLICE)
      for (int64_t j = 0; j < columns; j += SIDE)
        for (int64_t r = 0; r < PANEL; r += SIDE)
          add_tile(left_tiles + PARTS * (depth * r + SIDE * k), right_tiles + PARTS * (depth * j + SIDE * k),
                   depth - k < SLICE ? depth - k : SLICE, c + (i + r) * columns + j, columns, k == 0);
    RELEASE_TILES();
  }
}

}  // namespace rldsl_tiles

extern "C" AOTITorchError aoti_torch_cpu_product_on_tiles(AtenTensorHandle a, AtenTensorHandle b,
                                                          AtenTensorHandle* result) {
  return rldsl_matrices::product(a, b, nullptr, result, rldsl_tiles::multiply);
}
