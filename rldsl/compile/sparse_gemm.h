// Batched float32 matrix products C = A B that skip the zeros of A, for x86 processors with AVX-512.
//
// Behind a ReLU about half of the activations are zero, and so are the gradients that flow back through it. A dense
// product multiplies by all of these zeros. For each item of the batch:
//
//   1. Pack B into panels of contiguous columns, `[columns / width][depth][width]`.
//   2. If at least a quarter of A is zero, compress each row of A to the values and positions of its nonzeros (as in
//      the CSR format) and accumulate `value * B[position, :]` in registers, one block of the depth after the other so
//      that the block of B stays in the L1 cache.
//   3. Otherwise multiply densely: a micro-kernel of 8 rows by 2 vectors of columns.
//
// Products with at most four columns are computed as dot products. A bias and a ReLU can be applied to the sums before
// they are stored.
//
// NaN and infinity follow IEEE 754, as in torch: 0 * inf and 0 * nan are nan, so zeros are skipped only if all of B is
// finite. Sums are float32, in order of the depth.
//
// kernels.py makes inductor include this file into the code of a compiled step.
#pragma once
#include <immintrin.h>
#include <omp.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace rldsl {

// Static: each compiled step is a shared library with its own copy. GCC needs `optimize`, because inductor compiles the
// code around its own kernels with -O1 or less; and `unroll`, so that arrays indexed by a loop stay in registers.
#if defined(__clang__)
#define RLDSL_AVX512 static inline __attribute__((target("avx512f,avx512bw,avx512vl")))
#define RLDSL_UNROLL _Pragma("unroll")
#else
#define RLDSL_AVX512 static inline __attribute__((target("avx512f,avx512bw,avx512vl"), optimize("O3")))
#define RLDSL_UNROLL _Pragma("GCC unroll 16")
#endif

constexpr int64_t kLanes = 16;                   // floats in a vector
constexpr int64_t kMaxPanelWidth = 128;          // B becomes one panel if it has at most so many columns, ...
constexpr int64_t kPanelWidth = 64;              // ... otherwise several of this width
constexpr int64_t kBlockSize = 8192;             // floats of a panel (32 KB) that the sparse kernel reads repeatedly
constexpr int64_t kRowTile = 8;                  // rows of the dense micro-kernel
constexpr int64_t kMinSparseColumns = 4 * kLanes;  // fewer columns do not pay for compressing A
constexpr double kMaxDensity = 0.75;             // a larger share of nonzeros is multiplied densely

// A read-only matrix. `outer` counts the rows of A or the columns of B, `depth` the dimension that is summed over.
struct Matrix {
  const float* data;
  int64_t outer_stride, depth_stride;  // one of them is 1

  const float* at(int64_t outer, int64_t depth) const { return data + outer * outer_stride + depth * depth_stride; }
};

// A scratch buffer that grows and is reused by later calls of the same thread.
template <typename T>
struct Scratch {
  T* data = nullptr;
  int64_t capacity = 0;

  T* reserve(int64_t count) {
    if (count > capacity) {
      std::free(data);
      data = static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + 63) / 64 * 64));
      capacity = data ? count : 0;
      if (!data) throw std::bad_alloc();
    }
    return data;
  }
  ~Scratch() { std::free(data); }
};

RLDSL_AVX512 int64_t minimum(int64_t a, int64_t b) { return a < b ? a : b; }

RLDSL_AVX512 int64_t round_up(int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// A mask of the first `count` lanes, of all lanes if `count` is 16 or more.
RLDSL_AVX512 __mmask16 first_lanes(int64_t count) { return count >= kLanes ? 0xFFFF : (1u << count) - 1; }

RLDSL_AVX512 __m512 bias_relu(__m512 x, __m512 bias) {
  return _mm512_max_ps(_mm512_setzero_ps(), _mm512_add_ps(x, bias));  // the second operand if one is nan
}

// --- Reading blocks of 16 x 16 --------------------------------------------------------------------------------------

RLDSL_AVX512 void transpose(__m512 block[kLanes]) {
  __m512i r[kLanes], t[kLanes];
  RLDSL_UNROLL
  for (int i = 0; i < kLanes; i++) r[i] = _mm512_castps_si512(block[i]);
  RLDSL_UNROLL
  for (int i = 0; i < kLanes; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  RLDSL_UNROLL
  for (int i = 0; i < kLanes; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  RLDSL_UNROLL
  for (int i = 0; i < 4; i++) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 8] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  RLDSL_UNROLL
  for (int i = 0; i < 4; i++) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xdd);
  }
  RLDSL_UNROLL
  for (int i = 0; i < kLanes; i++) block[i] = _mm512_castsi512_ps(r[i]);
}

// Reads 16 x 16 floats, one vector for each outer index, zero beyond the end of the matrix (`outers` x `depths`).
RLDSL_AVX512 void read_block(Matrix x, int64_t outer, int64_t outers, int64_t depth, int64_t depths,
                             __m512 block[kLanes]) {
  const bool along_depth = x.depth_stride == 1;
  const int64_t lines = along_depth ? outers - outer : depths - depth;
  const __mmask16 mask = first_lanes(along_depth ? depths - depth : outers - outer);
  const float* line = x.at(outer, depth);
  RLDSL_UNROLL
  for (int i = 0; i < kLanes; i++, line += along_depth ? x.outer_stride : x.depth_stride)
    block[i] = i < lines ? _mm512_maskz_loadu_ps(mask, line) : _mm512_setzero_ps();
  if (!along_depth) transpose(block);
}

// --- Packing B ------------------------------------------------------------------------------------------------------

// B as [columns / width][depth][width].
struct Panels {
  const float* data;
  int64_t depth, width;

  int64_t index(int64_t column, int64_t k) const {
    return column / width * width * depth + k * width + column % width;
  }
  const float* at(int64_t column, int64_t k) const { return data + index(column, k); }
};

// Copies B into panels, unless it already lies in memory as a single panel.
RLDSL_AVX512 Panels pack(Matrix b, int64_t columns, int64_t depth, bool parallel) {
  static thread_local Scratch<float> scratch;
  const int64_t width = columns > kMaxPanelWidth ? kPanelWidth : round_up(columns, kLanes);
  if (b.outer_stride == 1 && b.depth_stride == width && columns == width) return {b.data, depth, width};
  float* const data = scratch.reserve(round_up(columns, width) * depth);
  const Panels panels{data, depth, width};
  if (b.outer_stride == 1) {
#pragma omp parallel for if (parallel)
    for (int64_t k = 0; k < depth; k++)
      for (int64_t first = 0; first < columns; first += width)
        for (int64_t j = first; j < minimum(columns, first + width); j += kLanes)
          _mm512_store_ps(data + first * depth + k * width + j - first,
                          _mm512_maskz_loadu_ps(first_lanes(columns - j), b.at(j, k)));
    return panels;
  }
#pragma omp parallel for if (parallel)
  for (int64_t j = 0; j < columns; j += kLanes)
    for (int64_t k = 0; k < depth; k += kLanes) {
      __m512 block[kLanes];
      read_block(b, j, columns, k, depth, block);
      transpose(block);
      float* const to = data + panels.index(j, k);
      for (int64_t i = 0; i < kLanes && k + i < depth; i++) _mm512_store_ps(to + i * width, block[i]);
    }
  return panels;
}

// --- Which kernel ---------------------------------------------------------------------------------------------------

// Estimates the share of zeros in A from at most 16 of its lines in memory.
RLDSL_AVX512 bool is_sparse(Matrix a, int64_t rows, int64_t depth) {
  const bool along_depth = a.depth_stride == 1;
  const int64_t lines = along_depth ? rows : depth, length = along_depth ? depth : rows, step = lines / kLanes + 1;
  int64_t seen = 0, nonzero = 0;
  for (int64_t line = 0; line < lines; line += step)
    for (int64_t i = 0; i < length; i += kLanes) {
      const __mmask16 mask = first_lanes(length - i);
      const __m512 x = _mm512_maskz_loadu_ps(mask, along_depth ? a.at(line, i) : a.at(i, line));
      seen += __builtin_popcount(mask);
      nonzero += __builtin_popcount(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ));
    }
  return nonzero < kMaxDensity * seen;
}

// Whether no element is infinite or nan, by the bits of the exponent: fast-math options cannot optimize that away.
RLDSL_AVX512 bool is_finite(Matrix b, int64_t columns, int64_t depth) {
  const bool along_depth = b.depth_stride == 1;
  const int64_t lines = along_depth ? columns : depth, length = along_depth ? depth : columns;
  const __m512i exponent = _mm512_set1_epi32(0x7F800000);
  __mmask16 found = 0;
  for (int64_t line = 0; line < lines; line++)
    for (int64_t i = 0; i < length; i += kLanes) {
      const __m512i x = _mm512_maskz_loadu_epi32(first_lanes(length - i), along_depth ? b.at(line, i) : b.at(i, line));
      found |= _mm512_cmpeq_epi32_mask(_mm512_and_si512(x, exponent), exponent);
    }
  return found == 0;
}

// --- Sparse kernel --------------------------------------------------------------------------------------------------

// The nonzeros of some rows of A: for each block of the depth, and in it for each row, a list of values and of offsets,
// from the start of the block in a panel of B to the row of B that the value is multiplied by.
struct Nonzeros {
  int64_t rows, block;  // `block` is the depth of a block and the capacity of a list
  float* values;
  uint16_t* offsets;
  int32_t* counts;

  int64_t list(int64_t row, int64_t k) const { return k / block * rows + row; }
};

// Appends the nonzeros of a vector to a list; returns their number.
RLDSL_AVX512 int64_t compress(__m512 x, __m512i offsets, float* values_end, uint16_t* offsets_end) {
  const __mmask16 nonzero = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
  _mm512_storeu_ps(values_end, _mm512_maskz_compress_ps(nonzero, x));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(offsets_end),
                      _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(nonzero, offsets)));
  return __builtin_popcount(nonzero);
}

// The offsets of the first 16 rows of a block in a panel.
RLDSL_AVX512 __m512i first_offsets(int64_t width) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_mullo_epi32(lane, _mm512_set1_epi32(width));
}

// Compresses an A whose rows are contiguous.
RLDSL_AVX512 void compress_rows(Matrix a, int64_t depth, int64_t width, const Nonzeros& lists) {
  const __m512i next = _mm512_set1_epi32(kLanes * width);
  for (int64_t row = 0; row < lists.rows; row++)
    for (int64_t begin = 0; begin < depth; begin += lists.block) {
      const int64_t end = minimum(begin + lists.block, depth), list = lists.list(row, begin);
      int64_t at = list * lists.block;
      __m512i offsets = first_offsets(width);
      for (int64_t k = begin; k < end; k += kLanes, offsets = _mm512_add_epi32(offsets, next)) {
        const __m512 x = _mm512_maskz_loadu_ps(first_lanes(depth - k), a.at(row, k));
        at += compress(x, offsets, lists.values + at, lists.offsets + at);
      }
      lists.counts[list] = at - list * lists.block;
    }
}

// Compresses an A whose columns are contiguous, 16 rows at a time.
RLDSL_AVX512 void compress_columns(Matrix a, int64_t depth, int64_t width, const Nonzeros& lists) {
  const __m512i next = _mm512_set1_epi32(kLanes * width);
  for (int64_t row = 0; row < lists.rows; row += kLanes)
    for (int64_t begin = 0; begin < depth; begin += lists.block) {
      const int64_t end = minimum(begin + lists.block, depth), list = lists.list(row, begin);
      const int64_t count = minimum(lists.rows - row, kLanes);
      int64_t at[kLanes];
      for (int64_t i = 0; i < kLanes; i++) at[i] = (list + i) * lists.block;
      __m512i offsets = first_offsets(width);
      for (int64_t k = begin; k < end; k += kLanes, offsets = _mm512_add_epi32(offsets, next)) {
        __m512 block[kLanes];
        read_block(a, row, lists.rows, k, depth, block);
        RLDSL_UNROLL
        for (int i = 0; i < kLanes; i++)
          if (i < count) at[i] += compress(block[i], offsets, lists.values + at[i], lists.offsets + at[i]);
      }
      for (int64_t i = 0; i < count; i++) lists.counts[list + i] = at[i] - (list + i) * lists.block;
    }
}

template <int VECTORS>
RLDSL_AVX512 void add_scaled_row(__m512 value, const float* row, __m512 sum[VECTORS]) {
  RLDSL_UNROLL
  for (int v = 0; v < VECTORS; v++) sum[v] = _mm512_fmadd_ps(value, _mm512_loadu_ps(row + v * kLanes), sum[v]);
}

// Adds `value * B[offset]`, for all nonzeros of a list, to VECTORS vectors of a row of C. Values and offsets are loaded
// eight at a time: one by one, they would take as many loads as another vector of B.
template <int VECTORS>
RLDSL_AVX512 void accumulate_list(const float* values, const uint16_t* offsets, int64_t count, const float* block,
                                  float* c, bool first, const float* bias) {
  __m512 sum[VECTORS];
  RLDSL_UNROLL
  for (int v = 0; v < VECTORS; v++) sum[v] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(c + v * kLanes);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256d eight = _mm256_loadu_pd(reinterpret_cast<const double*>(values + i));
    const __m512 twice = _mm512_castpd_ps(_mm512_broadcast_f64x4(eight));
    uint64_t packed[2];
    std::memcpy(packed, offsets + i, sizeof packed);
    RLDSL_UNROLL
    for (int n = 0; n < 8; n++) {
      const __m512 value = _mm512_permutexvar_ps(_mm512_set1_epi32(n), twice);
      add_scaled_row<VECTORS>(value, block + (packed[n / 4] >> n % 4 * 16 & 0xFFFF), sum);
    }
  }
  for (; i < count; i++) add_scaled_row<VECTORS>(_mm512_set1_ps(values[i]), block + offsets[i], sum);
  RLDSL_UNROLL
  for (int v = 0; v < VECTORS; v++)
    _mm512_storeu_ps(c + v * kLanes, bias ? bias_relu(sum[v], _mm512_loadu_ps(bias + v * kLanes)) : sum[v]);
}

template <int VECTORS>
RLDSL_AVX512 void accumulate_block(const Nonzeros& lists, int64_t k, const float* block, float* c, int64_t columns,
                                   const float* bias) {
  for (int64_t row = 0; row < lists.rows; row++, c += columns) {
    const int64_t list = lists.list(row, k), at = list * lists.block;
    accumulate_list<VECTORS>(lists.values + at, lists.offsets + at, lists.counts[list], block, c, k == 0, bias);
  }
}

// `columns` is a multiple of 16.
RLDSL_AVX512 void multiply_sparse(Matrix a, Panels b, const float* bias, float* c, int64_t rows, int64_t columns) {
  static thread_local Scratch<float> values;
  static thread_local Scratch<uint16_t> offsets;
  static thread_local Scratch<int32_t> counts;
  const int64_t block = minimum(kBlockSize / b.width / kLanes * kLanes, round_up(b.depth, kLanes));
  const int64_t count = rows * (round_up(b.depth, block) / block);
  const Nonzeros lists{rows, block, values.reserve(count * block), offsets.reserve(count * block),
                       counts.reserve(count)};
  (a.depth_stride == 1 ? compress_rows : compress_columns)(a, b.depth, b.width, lists);
  for (int64_t j = 0; j < columns; j += b.width)
    for (int64_t k = 0; k < b.depth; k += block) {
      const float *const from = b.at(j, k), *const last = bias && k + block >= b.depth ? bias + j : nullptr;
      switch (minimum(columns - j, b.width) / kLanes) {
        case 1: accumulate_block<1>(lists, k, from, c + j, columns, last); break;
        case 2: accumulate_block<2>(lists, k, from, c + j, columns, last); break;
        case 3: accumulate_block<3>(lists, k, from, c + j, columns, last); break;
        case 4: accumulate_block<4>(lists, k, from, c + j, columns, last); break;
        case 5: accumulate_block<5>(lists, k, from, c + j, columns, last); break;
        case 6: accumulate_block<6>(lists, k, from, c + j, columns, last); break;
        case 7: accumulate_block<7>(lists, k, from, c + j, columns, last); break;
        case 8: accumulate_block<8>(lists, k, from, c + j, columns, last); break;
      }
    }
}

// --- Dense kernel ---------------------------------------------------------------------------------------------------

// ROWS rows by VECTORS vectors of columns.
template <int ROWS, int VECTORS, bool ALONG_DEPTH>
RLDSL_AVX512 void multiply_tile(Matrix a, int64_t row, Panels b, const float* bias, float* c, int64_t column,
                                int64_t columns) {
  __m512 sum[ROWS][VECTORS];
  RLDSL_UNROLL
  for (int r = 0; r < ROWS; r++)
    RLDSL_UNROLL
    for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_setzero_ps();
  const float *left = a.at(row, 0), *right = b.at(column, 0);
  for (int64_t k = 0; k < b.depth; k++, left += ALONG_DEPTH ? 1 : a.depth_stride, right += b.width) {
    __m512 y[VECTORS];
    RLDSL_UNROLL
    for (int v = 0; v < VECTORS; v++) y[v] = _mm512_loadu_ps(right + v * kLanes);
    RLDSL_UNROLL
    for (int r = 0; r < ROWS; r++) {
      const __m512 x = _mm512_set1_ps(left[r * (ALONG_DEPTH ? a.outer_stride : 1)]);
      RLDSL_UNROLL
      for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_fmadd_ps(x, y[v], sum[r][v]);
    }
  }
  RLDSL_UNROLL
  for (int r = 0; r < ROWS; r++)
    RLDSL_UNROLL
    for (int v = 0; v < VECTORS; v++) {
      const int64_t j = column + v * kLanes;
      const __mmask16 mask = first_lanes(columns - j);
      const __m512 x = bias ? bias_relu(sum[r][v], _mm512_maskz_loadu_ps(mask, bias + j)) : sum[r][v];
      _mm512_mask_storeu_ps(c + (row + r) * columns + j, mask, x);
    }
}

template <int VECTORS, bool ALONG_DEPTH>
RLDSL_AVX512 void multiply_columns(Matrix a, int64_t rows, Panels b, const float* bias, float* c, int64_t column,
                                   int64_t columns) {
  int64_t row = 0;
  for (; row + kRowTile <= rows; row += kRowTile)
    multiply_tile<kRowTile, VECTORS, ALONG_DEPTH>(a, row, b, bias, c, column, columns);
  for (; row + 2 <= rows; row += 2) multiply_tile<2, VECTORS, ALONG_DEPTH>(a, row, b, bias, c, column, columns);
  if (row < rows) multiply_tile<1, VECTORS, ALONG_DEPTH>(a, row, b, bias, c, column, columns);
}

RLDSL_AVX512 void multiply_dense(Matrix a, Panels b, const float* bias, float* c, int64_t rows, int64_t columns) {
  const bool along_depth = a.depth_stride == 1;
  for (int64_t j = 0; j < columns; j += 2 * kLanes) {
    const bool two = j + kLanes < columns;
    auto multiply = two ? (along_depth ? multiply_columns<2, true> : multiply_columns<2, false>)
                        : (along_depth ? multiply_columns<1, true> : multiply_columns<1, false>);
    multiply(a, rows, b, bias, c, j, columns);
  }
}

// --- At most four columns -------------------------------------------------------------------------------------------

// ROWS contiguous rows of A by COLUMNS contiguous columns of B: dot products.
template <int COLUMNS, int ROWS>
RLDSL_AVX512 void dot_rows(Matrix a, int64_t row, const float* b, float* c, int64_t depth) {
  __m512 sum[ROWS][COLUMNS] = {};
  for (int64_t k = 0; k < depth; k += kLanes) {
    const __mmask16 mask = first_lanes(depth - k);
    __m512 y[COLUMNS];
    RLDSL_UNROLL
    for (int j = 0; j < COLUMNS; j++) y[j] = _mm512_maskz_loadu_ps(mask, b + j * depth + k);
    RLDSL_UNROLL
    for (int r = 0; r < ROWS; r++) {
      const __m512 x = _mm512_maskz_loadu_ps(mask, a.at(row + r, k));
      RLDSL_UNROLL
      for (int j = 0; j < COLUMNS; j++) sum[r][j] = _mm512_fmadd_ps(x, y[j], sum[r][j]);
    }
  }
  RLDSL_UNROLL
  for (int r = 0; r < ROWS; r++)
    RLDSL_UNROLL
    for (int j = 0; j < COLUMNS; j++) c[(row + r) * COLUMNS + j] = _mm512_reduce_add_ps(sum[r][j]);
}

// The same where the columns of A are contiguous: VECTORS vectors of 16 rows each.
template <int COLUMNS, int VECTORS>
RLDSL_AVX512 void dot_columns(Matrix a, int64_t row, int64_t rows, const float* b, float* c, int64_t depth) {
  __m512 sum[VECTORS][COLUMNS] = {};
  const __mmask16 last = first_lanes(rows - row - (VECTORS - 1) * kLanes);  // the other vectors are full
  for (int64_t k = 0; k < depth; k++) {
    const float* const x = a.at(row, k);
    RLDSL_UNROLL
    for (int v = 0; v < VECTORS; v++) {
      const __m512 part = _mm512_maskz_loadu_ps(v < VECTORS - 1 ? 0xFFFF : last, x + v * kLanes);
      RLDSL_UNROLL
      for (int j = 0; j < COLUMNS; j++) sum[v][j] = _mm512_fmadd_ps(part, _mm512_set1_ps(b[j * depth + k]), sum[v][j]);
    }
  }
  alignas(64) float columns[COLUMNS][VECTORS * kLanes];
  RLDSL_UNROLL
  for (int v = 0; v < VECTORS; v++)
    RLDSL_UNROLL
    for (int j = 0; j < COLUMNS; j++) _mm512_store_ps(columns[j] + v * kLanes, sum[v][j]);
  for (int64_t r = 0; r < VECTORS * kLanes && row + r < rows; r++)
    for (int j = 0; j < COLUMNS; j++) c[(row + r) * COLUMNS + j] = columns[j][r];
}

template <int COLUMNS>
RLDSL_AVX512 void multiply_narrow(Matrix a, Matrix b, float* c, int64_t rows, int64_t depth) {
  static thread_local Scratch<float> scratch;
  float* const packed = scratch.reserve(COLUMNS * depth);
  RLDSL_UNROLL
  for (int j = 0; j < COLUMNS; j++)
    for (int64_t k = 0; k < depth; k++) packed[j * depth + k] = *b.at(j, k);
  int64_t row = 0;
  if (a.depth_stride == 1) {
    for (; row + 4 <= rows; row += 4) dot_rows<COLUMNS, 4>(a, row, packed, c, depth);
    for (; row < rows; row++) dot_rows<COLUMNS, 1>(a, row, packed, c, depth);
  } else {
    for (; row + 4 * kLanes <= rows; row += 4 * kLanes) dot_columns<COLUMNS, 4>(a, row, rows, packed, c, depth);
    for (; row < rows; row += kLanes) dot_columns<COLUMNS, 1>(a, row, rows, packed, c, depth);
  }
}

// --- One product ----------------------------------------------------------------------------------------------------

RLDSL_AVX512 void multiply_wide(Matrix a, Matrix b, const float* bias, float* c, int64_t rows, int64_t columns,
                                int64_t depth) {
  const int64_t threads = omp_get_max_threads();
  const Panels panels = pack(b, columns, depth, threads > 1);
  const bool sparse = columns % kLanes == 0 && columns >= kMinSparseColumns && is_sparse(a, rows, depth) &&
                      is_finite(b, columns, depth);
  const int64_t share = round_up((rows + threads - 1) / threads, kRowTile);
#pragma omp parallel for if (threads > 1)
  for (int64_t row = 0; row < rows; row += share)
    (sparse ? multiply_sparse : multiply_dense)({a.at(row, 0), a.outer_stride, a.depth_stride}, panels, bias,
                                                c + row * columns, minimum(rows - row, share), columns);
}

// C = A B, or relu(A B + bias) with a bias; C is contiguous.
RLDSL_AVX512 void multiply(Matrix a, Matrix b, const float* bias, float* c, int64_t rows, int64_t columns,
                           int64_t depth) {
  if (bias) return multiply_wide(a, b, bias, c, rows, columns, depth);
  switch (columns) {
    case 1: return multiply_narrow<1>(a, b, c, rows, depth);
    case 2: return multiply_narrow<2>(a, b, c, rows, depth);
    case 3: return multiply_narrow<3>(a, b, c, rows, depth);
    case 4: return multiply_narrow<4>(a, b, c, rows, depth);
    default: return multiply_wide(a, b, nullptr, c, rows, columns, depth);
  }
}

// --- Operators of torch ---------------------------------------------------------------------------------------------

// A tensor [batch, n, m] of float32.
struct Tensor3 {
  int64_t *size, *stride;
  void* data;

  explicit Tensor3(AtenTensorHandle tensor) {
    aoti_torch_get_sizes(tensor, &size);
    aoti_torch_get_strides(tensor, &stride);
    aoti_torch_get_data_ptr(tensor, &data);
  }
  const float* item(int64_t i) const { return static_cast<const float*>(data) + i * stride[0]; }
  bool has_contiguous_lines() const { return stride[1] == 1 || stride[2] == 1; }
};

static AOTITorchError batched_product(AtenTensorHandle a_handle, AtenTensorHandle b_handle, const Tensor3* bias,
                                      AtenTensorHandle* result) {
  const Tensor3 a(a_handle), b(b_handle);
  if (!a.has_contiguous_lines() || !b.has_contiguous_lines() || (bias && bias->stride[2] != 1))
    return AOTI_TORCH_FAILURE;
  const int64_t batch = a.size[0], rows = a.size[1], depth = a.size[2], columns = b.size[2];
  const int64_t size[] = {batch, rows, columns}, stride[] = {rows * columns, columns, 1};
  const AOTITorchError status = aoti_torch_empty_strided(3, size, stride, aoti_torch_dtype_float32(),
                                                         aoti_torch_device_type_cpu(), 0, result);
  if (status != AOTI_TORCH_SUCCESS) return status;
  void* c;
  aoti_torch_get_data_ptr(*result, &c);
  for (int64_t i = 0; i < batch; i++)
    multiply({a.item(i), a.stride[1], a.stride[2]}, {b.item(i), b.stride[2], b.stride[1]},
             bias ? bias->item(i) : nullptr, static_cast<float*>(c) + i * rows * columns, rows, columns, depth);
  return AOTI_TORCH_SUCCESS;
}

}  // namespace rldsl

extern "C" AOTITorchError aoti_torch_cpu_sparse_left_bmm(AtenTensorHandle a, AtenTensorHandle b,
                                                         AtenTensorHandle* result) {
  return rldsl::batched_product(a, b, nullptr, result);
}

extern "C" AOTITorchError aoti_torch_cpu_sparse_left_linear_relu(AtenTensorHandle a, AtenTensorHandle b,
                                                                 AtenTensorHandle bias, AtenTensorHandle* result) {
  const rldsl::Tensor3 bias_tensor(bias);
  return rldsl::batched_product(a, b, &bias_tensor, result);
}
