// A product of float32 matrices on the vectors of a processor (AVX-512) that leaves out the zeros of the left matrix.
//
// Behind a relu about half of all numbers are 0, and so are the gradients that pass it. So what is not 0 in a row is
// listed first; for each number of the list, the row of the right matrix that it meets is added to a row of the sum,
// which stays in registers. The right matrix is read in blocks that fit into the nearest cache. Where few numbers are 0,
// rows and columns are multiplied as anywhere else.
//
// A zero that meets what is no number may give nothing: a network that has diverged is known by its parameters.
//
// Included into the code of a compiled step; see products.py.
#pragma once
#include "matrices.h"

namespace rldsl_vectors {

using rldsl_matrices::Matrix;
using rldsl_matrices::Room;

constexpr int64_t LANES = 16;       // numbers of a vector
constexpr int64_t WIDEST = 128;     // columns that are summed at a time, if there are no more ...
constexpr int64_t PANEL = 64;       // ... and if there are
constexpr int64_t CACHED = 8192;    // numbers of a panel that are read again and again
constexpr int64_t ROWS = 8;         // that are multiplied by two vectors at a time, where zeros are not left out
constexpr int64_t WORTH_LISTS = 4 * LANES;  // columns from which the time for lists is made good
constexpr double DENSE = 0.75;      // the share of numbers that are not 0 from which leaving out the others gains nothing

FAST inline __mmask16 first_lanes(int64_t count) { return count >= LANES ? 0xFFFF : (1u << count) - 1; }

FAST inline int64_t whole(int64_t count, int64_t by) { return (count + by - 1) / by * by; }

FAST inline void turn(__m512 block[LANES]) {
  __m512i rows[LANES];
  UNROLLED
  for (int i = 0; i < LANES; i++) rows[i] = _mm512_castps_si512(block[i]);
  rldsl_matrices::transpose(rows);
  UNROLLED
  for (int i = 0; i < LANES; i++) block[i] = _mm512_castsi512_ps(rows[i]);
}

// 16 x 16 numbers, a vector for each of the outer ones; 0 beyond the edges.
FAST inline void read_block(Matrix x, int64_t outer, int64_t outers, int64_t depth, int64_t depths, __m512 block[LANES]) {
  const bool along = x.depth_stride == 1;
  const int64_t lines = along ? outers - outer : depths - depth;
  const __mmask16 lanes = first_lanes(along ? depths - depth : outers - outer);
  const float* line = x.from(outer, depth);
  UNROLLED
  for (int i = 0; i < LANES; i++, line += along ? x.outer_stride : x.depth_stride)
    block[i] = i < lines ? _mm512_maskz_loadu_ps(lanes, line) : _mm512_setzero_ps();
  if (!along) turn(block);
}

// A number for each row of a matrix, or none at all.
struct Numbers {
  const float* at;
  int64_t stride;

  float of(int64_t row) const { return at[row * stride]; }
  FAST_METHOD __m512 times(__m512 x, int64_t row) const { return at ? _mm512_mul_ps(x, _mm512_set1_ps(of(row))) : x; }
};

// The right matrix as [columns / width][depth][width].
struct Panels {
  const float* at;
  int64_t depth, width;

  int64_t place(int64_t column, int64_t k) const { return column / width * width * depth + k * width + column % width; }
  const float* from(int64_t column, int64_t k) const { return at + place(column, k); }
};

// Reads the matrix line by line, as it lies in memory; its rows are multiplied by the numbers of `scale`, if there are
// any.
FAST inline Panels pack(Matrix b, Numbers scale, int64_t columns, int64_t depth, bool several) {
  static thread_local Room<float> room;
  const int64_t width = columns > WIDEST ? PANEL : whole(columns, LANES);
  const bool ready = b.outer_stride == 1 && b.depth_stride == width && columns == width;
  if (ready && !scale.at) return {b.at, depth, width};
  float* const at = room.of(whole(columns, width) * depth);
  const Panels panels{at, depth, width};
  if (b.outer_stride == 1) {
#pragma omp parallel for if (several)
    for (int64_t k = 0; k < depth; k++)
      for (int64_t first = 0; first < columns; first += width)
        for (int64_t j = first; j < columns && j < first + width; j += LANES)
          _mm512_store_ps(at + first * depth + k * width + j - first,
                          scale.times(_mm512_maskz_loadu_ps(first_lanes(columns - j), b.from(j, k)), k));
    return panels;
  }
#pragma omp parallel for if (several)
  for (int64_t j = 0; j < columns; j += LANES)
    for (int64_t k = 0; k < depth; k += LANES) {
      __m512 block[LANES];
      read_block(b, j, columns, k, depth, block);
      turn(block);
      float* const to = at + panels.place(j, k);
      for (int64_t i = 0; i < LANES && k + i < depth; i++)
        _mm512_store_ps(to + i * width, scale.times(block[i], k + i));
    }
  return panels;
}

// relu(x + bias); what is no number stays none.
FAST inline __m512 activate(__m512 x, __m512 bias) { return _mm512_max_ps(_mm512_setzero_ps(), _mm512_add_ps(x, bias)); }

// --- without the zeros --------------------------------------------------------

// What is not 0 in some rows: for each block of the depth, and in it for each row, a list of numbers, and of the places
// in the block of a panel where the rows begin that they meet.
struct Lists {
  int64_t rows, block;
  float* numbers;
  uint16_t* places;
  int32_t* counts;

  int64_t list(int64_t row, int64_t k) const { return k / block * rows + row; }
};

// The places of sixteen numbers, from the first of a block on, and how far the next sixteen are.
struct Places {
  __m512i first, next;
};

FAST inline Places places_of(int64_t width) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return {_mm512_mullo_epi32(lane, _mm512_set1_epi32(width)), _mm512_set1_epi32(LANES * width)};
}

// Lists what is not 0 in a vector; returns how much that is.
FAST inline int64_t list_vector(__m512 x, __m512i places, float* numbers_to, uint16_t* places_to) {
  const __mmask16 kept = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
  _mm512_storeu_ps(numbers_to, _mm512_maskz_compress_ps(kept, x));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(places_to),
                      _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(kept, places)));
  return __builtin_popcount(kept);
}

// Of rows that lie along the depth.
FAST inline void list_along(Matrix a, int64_t depth, Places places, const Lists& lists) {
  for (int64_t row = 0; row < lists.rows; row++)
    for (int64_t begin = 0; begin < depth; begin += lists.block) {
      const int64_t end = begin + lists.block < depth ? begin + lists.block : depth, list = lists.list(row, begin);
      int64_t at = list * lists.block;
      __m512i here = places.first;
      const float* x = a.from(row, begin);
      for (int64_t k = begin; k < end; k += LANES, x += LANES, here = _mm512_add_epi32(here, places.next)) {
        const bool full = depth - k >= LANES;
        const __m512 numbers = full ? _mm512_loadu_ps(x) : _mm512_maskz_loadu_ps(first_lanes(depth - k), x);
        at += list_vector(numbers, here, lists.numbers + at, lists.places + at);
      }
      lists.counts[list] = at - list * lists.block;
    }
}

// Of rows that lie side by side.
FAST inline void list_across(Matrix a, int64_t depth, Places places, const Lists& lists) {
  for (int64_t row = 0; row < lists.rows; row += LANES)
    for (int64_t begin = 0; begin < depth; begin += lists.block) {
      const int64_t end = begin + lists.block < depth ? begin + lists.block : depth, list = lists.list(row, begin);
      const int64_t count = lists.rows - row < LANES ? lists.rows - row : LANES;
      int64_t at[LANES];
      for (int64_t i = 0; i < LANES; i++) at[i] = (list + i) * lists.block;
      __m512i here = places.first;
      for (int64_t k = begin; k < end; k += LANES, here = _mm512_add_epi32(here, places.next)) {
        __m512 block[LANES];
        read_block(a, row, lists.rows, k, depth, block);
        UNROLLED
        for (int i = 0; i < LANES; i++)
          if (i < count) at[i] += list_vector(block[i], here, lists.numbers + at[i], lists.places + at[i]);
      }
      for (int64_t i = 0; i < count; i++) lists.counts[list + i] = at[i] - (list + i) * lists.block;
    }
}

template <int VECTORS>
FAST inline void add_row(__m512 number, const float* met, __m512 sum[VECTORS]) {
  UNROLLED
  for (int v = 0; v < VECTORS; v++) sum[v] = _mm512_fmadd_ps(number, _mm512_loadu_ps(met + v * LANES), sum[v]);
}

// Adds the numbers of a list times the rows that they meet to VECTORS vectors of a row of the sum. Eight at a time:
// reading numbers and places one by one would take as long as reading another vector of each row.
template <int VECTORS>
FAST inline void add_list(const float* numbers, const uint16_t* places, int64_t count, const float* block, float* c,
                          bool first, const float* bias) {
  constexpr int TOGETHER = 8;
  __m512 sum[VECTORS];
  UNROLLED
  for (int v = 0; v < VECTORS; v++) sum[v] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(c + v * LANES);
  int64_t i = 0;
  for (; i + TOGETHER <= count; i += TOGETHER) {
    const __m256d eight = _mm256_loadu_pd(reinterpret_cast<const double*>(numbers + i));
    const __m512 twice = _mm512_castpd_ps(_mm512_broadcast_f64x4(eight));
    uint64_t place[2];
    std::memcpy(place, places + i, sizeof place);
    UNROLLED
    for (int n = 0; n < TOGETHER; n++) {
      const __m512 number = _mm512_permutexvar_ps(_mm512_set1_epi32(n), twice);
      add_row<VECTORS>(number, block + (place[n / 4] >> n % 4 * 16 & 0xFFFF), sum);
    }
  }
  for (; i < count; i++) add_row<VECTORS>(_mm512_set1_ps(numbers[i]), block + places[i], sum);
  UNROLLED
  for (int v = 0; v < VECTORS; v++)
    _mm512_storeu_ps(c + v * LANES, bias ? activate(sum[v], _mm512_loadu_ps(bias + v * LANES)) : sum[v]);
}

template <int VECTORS>
FAST inline void add_block(const Lists& lists, int64_t k, const float* block, float* c, int64_t columns,
                           const float* bias) {
  for (int64_t row = 0; row < lists.rows; row++, c += columns) {
    const int64_t list = lists.list(row, k);
    add_list<VECTORS>(lists.numbers + list * lists.block, lists.places + list * lists.block, lists.counts[list], block, c,
                      k == 0, bias);
  }
}

// Columns by LANES.
FAST inline void multiply_listed(Matrix a, Panels b, const float* bias, float* c, int64_t rows, int64_t columns) {
  static thread_local Room<float> numbers;
  static thread_local Room<uint16_t> places;
  static thread_local Room<int32_t> counts;
  const int64_t fitting = CACHED / b.width / LANES * LANES;
  const int64_t block = fitting < b.depth ? fitting : whole(b.depth, LANES);
  const int64_t count = rows * (whole(b.depth, block) / block);
  const Lists lists{rows, block, numbers.of(count * block), places.of(count * block), counts.of(count)};
  (a.depth_stride == 1 ? list_along : list_across)(a, b.depth, places_of(b.width), lists);
  for (int64_t j = 0; j < columns; j += b.width)
    for (int64_t k = 0; k < b.depth; k += block) {
      const float *const from = b.from(j, k), *const last = bias && k + block >= b.depth ? bias + j : nullptr;
      switch ((columns - j < b.width ? columns - j : b.width) / LANES) {
        case 1: add_block<1>(lists, k, from, c + j, columns, last); break;
        case 2: add_block<2>(lists, k, from, c + j, columns, last); break;
        case 3: add_block<3>(lists, k, from, c + j, columns, last); break;
        case 4: add_block<4>(lists, k, from, c + j, columns, last); break;
        case 5: add_block<5>(lists, k, from, c + j, columns, last); break;
        case 6: add_block<6>(lists, k, from, c + j, columns, last); break;
        case 7: add_block<7>(lists, k, from, c + j, columns, last); break;
        case 8: add_block<8>(lists, k, from, c + j, columns, last); break;
      }
    }
}

// Judged by a sample of it.
FAST inline bool has_zeros(Matrix a, int64_t rows, int64_t depth) {
  const bool along = a.depth_stride == 1;
  const int64_t lines = along ? rows : depth, length = along ? depth : rows, step = lines / LANES + 1;
  int64_t seen = 0, kept = 0;
  for (int64_t line = 0; line < lines; line += step)
    for (int64_t i = 0; i < length; i += LANES) {
      const __mmask16 lanes = first_lanes(length - i);
      const __m512 x = _mm512_maskz_loadu_ps(lanes, along ? a.from(line, i) : a.from(i, line));
      seen += __builtin_popcount(lanes);
      kept += __builtin_popcount(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ));
    }
  return kept < DENSE * seen;
}

// --- gates ----------------------------------------------------------------------

// What a relu lets pass of a product of two vectors, q[i] * w[k] where gate[i, k] > 0, is most of the gradient of a layer
// below a single output. Its product with a matrix is q[i] * sum of w[k] * b[k], over the k that pass; which is the sum
// over all k without those that do not. So whichever are fewer are listed.

// Which rows of each block of `b` are to be added, for each gate, or taken from the sum of all: then the count is
// negative.
FAST inline void list_gates(Matrix gate, Numbers q, int64_t depth, int64_t width, const Lists& lists) {
  const Places places = places_of(width);
  for (int64_t row = 0; row < lists.rows; row++)
    for (int64_t begin = 0; begin < depth; begin += lists.block) {
      const int64_t end = begin + lists.block < depth ? begin + lists.block : depth, list = lists.list(row, begin);
      lists.counts[list] = 0;
      if (q.of(row) == 0) continue;
      __mmask16 open[CACHED / LANES / LANES];
      int64_t passing = 0;
      for (int64_t k = begin, i = 0; k < end; k += LANES, i++) {
        const __m512 x = _mm512_maskz_loadu_ps(first_lanes(end - k), gate.from(row, k));
        open[i] = _mm512_mask_cmp_ps_mask(first_lanes(end - k), x, _mm512_setzero_ps(), _CMP_NLE_UQ);
        passing += __builtin_popcount(open[i]);
      }
      const bool most = 2 * passing > end - begin;
      int64_t at = list * lists.block;
      __m512i here = places.first;
      for (int64_t k = begin, i = 0; k < end; k += LANES, i++, here = _mm512_add_epi32(here, places.next)) {
        const __mmask16 listed = most ? first_lanes(end - k) & ~open[i] : open[i];
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(lists.places + at),
                            _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(listed, here)));
        at += __builtin_popcount(listed);
      }
      const int64_t count = at - list * lists.block;
      lists.counts[list] = most ? -1 - count : count;
    }
}

// Adds what passes the gate of a row to VECTORS vectors of its sum; the last time, the sum is multiplied by its number.
template <int VECTORS>
FAST inline void add_passing(const uint16_t* places, int64_t count, const float* block, const float* all, float* c,
                             bool first, const float* number) {
  __m512 sum[VECTORS], before[VECTORS];
  UNROLLED
  for (int v = 0; v < VECTORS; v++) sum[v] = _mm512_setzero_ps();
  UNROLLED
  for (int v = 0; v < VECTORS; v++) before[v] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(c + v * LANES);
  const int64_t listed = count < 0 ? -1 - count : count;
  int64_t i = 0;
  for (; i + 4 <= listed; i += 4) {
    uint64_t place;
    std::memcpy(&place, places + i, sizeof place);
    UNROLLED
    for (int n = 0; n < 4; n++)
      UNROLLED
      for (int v = 0; v < VECTORS; v++)
        sum[v] = _mm512_add_ps(sum[v], _mm512_loadu_ps(block + (place >> n * 16 & 0xFFFF) + v * LANES));
  }
  for (; i < listed; i++)
    UNROLLED
    for (int v = 0; v < VECTORS; v++) sum[v] = _mm512_add_ps(sum[v], _mm512_loadu_ps(block + places[i] + v * LANES));
  UNROLLED
  for (int v = 0; v < VECTORS; v++) {
    const __m512 passing = count < 0 ? _mm512_sub_ps(_mm512_loadu_ps(all + v * LANES), sum[v]) : sum[v];
    const __m512 x = _mm512_add_ps(before[v], passing);
    _mm512_storeu_ps(c + v * LANES, number ? _mm512_mul_ps(x, _mm512_set1_ps(*number)) : x);
  }
}

// The sum of rows of a panel.
FAST inline void sum_rows(const float* rows, int64_t count, float* to) {
  __m512 sum[PANEL / LANES] = {};
  for (int64_t i = 0; i < count; i++) add_row<PANEL / LANES>(_mm512_set1_ps(1), rows + i * PANEL, sum);
  UNROLLED
  for (int v = 0; v < PANEL / LANES; v++) _mm512_storeu_ps(to + v * LANES, sum[v]);
}

// PANEL columns of the result.
FAST inline void multiply_gates(Numbers q, Panels b, const float* all, float* c, int64_t columns, int64_t column,
                                const Lists& lists) {
  for (int64_t k = 0; k < b.depth; k += lists.block, all += columns)
    for (int64_t row = 0; row < lists.rows; row++) {
      const int64_t list = lists.list(row, k);
      const float number = q.of(row);
      add_passing<PANEL / LANES>(lists.places + list * lists.block, lists.counts[list], b.from(column, k), all + column,
                                 c + row * columns + column, k == 0, k + lists.block >= b.depth ? &number : nullptr);
    }
}

// c = where(gate > 0, q * w, 0) @ b, [rows, depth] by [depth, columns]; columns by PANEL, and more than WIDEST.
FAST inline void multiply_gated(Matrix gate, Numbers q, Numbers w, Matrix b, float* c, int64_t rows, int64_t columns,
                                int64_t depth) {
  static thread_local Room<float> sums;
  const int64_t threads = omp_get_max_threads(), deep = whole(depth, LANES);
  const int64_t block = deep < CACHED / PANEL ? deep : CACHED / PANEL;
  const Panels panels = pack(b, w, columns, depth, threads > 1);
  float* const all = sums.of(whole(depth, block) / block * columns);
  for (int64_t j = 0; j < columns; j += PANEL)
    for (int64_t k = 0; k < depth; k += block)
      sum_rows(panels.from(j, k), depth - k < block ? depth - k : block, all + k / block * columns + j);
  const int64_t share = whole((rows + threads - 1) / threads, ROWS);
#pragma omp parallel for if (threads > 1)
  for (int64_t row = 0; row < rows; row += share) {
    static thread_local Room<uint16_t> places;
    static thread_local Room<int32_t> counts;
    const int64_t here = rows - row < share ? rows - row : share, count = here * (whole(depth, block) / block);
    const Lists lists{here, block, nullptr, places.of(count * block), counts.of(count)};
    const Numbers own{q.at + row * q.stride, q.stride};
    list_gates({gate.from(row, 0), gate.outer_stride, 1}, own, depth, panels.width, lists);
    for (int64_t j = 0; j < columns; j += PANEL)
      multiply_gates(own, panels, all, c + row * columns, columns, j, lists);
  }
}

// --- with them -----------------------------------------------------------------

// COUNT rows by VECTORS vectors of columns; ALONG: the rows of `a` lie along the depth.
template <int COUNT, int VECTORS, bool ALONG>
FAST inline void multiply_block(Matrix a, int64_t row, Panels b, const float* bias, float* c, int64_t column,
                                int64_t columns) {
  __m512 sum[COUNT][VECTORS];
  UNROLLED
  for (int r = 0; r < COUNT; r++)
    UNROLLED
    for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_setzero_ps();
  const float *left = a.from(row, 0), *right = b.from(column, 0);
  for (int64_t k = 0; k < b.depth; k++, left += ALONG ? 1 : a.depth_stride, right += b.width) {
    __m512 met[VECTORS];
    UNROLLED
    for (int v = 0; v < VECTORS; v++) met[v] = _mm512_loadu_ps(right + v * LANES);
    UNROLLED
    for (int r = 0; r < COUNT; r++) {
      const __m512 number = _mm512_set1_ps(left[r * (ALONG ? a.outer_stride : 1)]);
      UNROLLED
      for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_fmadd_ps(number, met[v], sum[r][v]);
    }
  }
  UNROLLED
  for (int r = 0; r < COUNT; r++)
    UNROLLED
    for (int v = 0; v < VECTORS; v++) {
      const int64_t j = column + v * LANES;
      const __mmask16 lanes = first_lanes(columns - j);
      const __m512 x = bias ? activate(sum[r][v], _mm512_maskz_loadu_ps(lanes, bias + j)) : sum[r][v];
      _mm512_mask_storeu_ps(c + (row + r) * columns + j, lanes, x);
    }
}

template <int VECTORS, bool ALONG>
FAST inline void multiply_columns(Matrix a, int64_t rows, Panels b, const float* bias, float* c, int64_t column,
                                  int64_t columns) {
  int64_t row = 0;
  for (; row + ROWS <= rows; row += ROWS) multiply_block<ROWS, VECTORS, ALONG>(a, row, b, bias, c, column, columns);
  for (; row + 2 <= rows; row += 2) multiply_block<2, VECTORS, ALONG>(a, row, b, bias, c, column, columns);
  if (row < rows) multiply_block<1, VECTORS, ALONG>(a, row, b, bias, c, column, columns);
}

FAST inline void multiply_all(Matrix a, Panels b, const float* bias, float* c, int64_t rows, int64_t columns) {
  const bool along = a.depth_stride == 1;
  for (int64_t j = 0; j < columns; j += 2 * LANES) {
    const bool two = j + LANES < columns;
    auto multiply = two ? (along ? multiply_columns<2, true> : multiply_columns<2, false>)
                        : (along ? multiply_columns<1, true> : multiply_columns<1, false>);
    multiply(a, rows, b, bias, c, j, columns);
  }
}

// --- few columns ----------------------------------------------------------------

// Rows that lie along the depth: a number of the result is a sum along two lines of memory. COUNT of them at a time.
template <int COLUMNS, int COUNT>
FAST inline void multiply_lines(Matrix a, int64_t row, const float* b, float* c, int64_t depth) {
  __m512 sum[COUNT][COLUMNS] = {};
  for (int64_t k = 0; k < depth; k += LANES) {
    const __mmask16 lanes = first_lanes(depth - k);
    __m512 met[COLUMNS];
    UNROLLED
    for (int j = 0; j < COLUMNS; j++) met[j] = _mm512_maskz_loadu_ps(lanes, b + j * depth + k);
    UNROLLED
    for (int r = 0; r < COUNT; r++) {
      const __m512 x = _mm512_maskz_loadu_ps(lanes, a.from(row + r, k));
      UNROLLED
      for (int j = 0; j < COLUMNS; j++) sum[r][j] = _mm512_fmadd_ps(x, met[j], sum[r][j]);
    }
  }
  UNROLLED
  for (int r = 0; r < COUNT; r++)
    UNROLLED
    for (int j = 0; j < COLUMNS; j++) c[(row + r) * COLUMNS + j] = _mm512_reduce_add_ps(sum[r][j]);
}

// Rows that lie side by side: sixteen of them are a vector. COUNT vectors at a time.
template <int COLUMNS, int COUNT>
FAST inline void multiply_sides(Matrix a, int64_t row, int64_t rows, const float* b, float* c, int64_t depth) {
  __m512 sum[COUNT][COLUMNS] = {};
  const __mmask16 lanes = first_lanes(rows - row - (COUNT - 1) * LANES);  // of the last vector: the others are full
  for (int64_t k = 0; k < depth; k++) {
    const float* const line = a.from(row, k);
    UNROLLED
    for (int s = 0; s < COUNT; s++) {
      const __m512 x = s < COUNT - 1 ? _mm512_loadu_ps(line + s * LANES) : _mm512_maskz_loadu_ps(lanes, line + s * LANES);
      UNROLLED
      for (int j = 0; j < COLUMNS; j++) sum[s][j] = _mm512_fmadd_ps(x, _mm512_set1_ps(b[j * depth + k]), sum[s][j]);
    }
  }
  alignas(64) float columns[COLUMNS][COUNT * LANES];
  UNROLLED
  for (int s = 0; s < COUNT; s++)
    UNROLLED
    for (int j = 0; j < COLUMNS; j++) _mm512_store_ps(columns[j] + s * LANES, sum[s][j]);
  for (int64_t r = 0; r < COUNT * LANES && row + r < rows; r++)
    for (int j = 0; j < COLUMNS; j++) c[(row + r) * COLUMNS + j] = columns[j][r];
}

template <int COLUMNS>
FAST inline void multiply_narrow(Matrix a, Matrix b, float* c, int64_t rows, int64_t depth) {
  static thread_local Room<float> room;
  float* const lines = room.of(COLUMNS * depth);
  UNROLLED
  for (int j = 0; j < COLUMNS; j++)
    for (int64_t k = 0; k < depth; k++) lines[j * depth + k] = *b.from(j, k);
  int64_t row = 0;
  if (a.depth_stride == 1) {
    for (; row + 4 <= rows; row += 4) multiply_lines<COLUMNS, 4>(a, row, lines, c, depth);
    for (; row < rows; row++) multiply_lines<COLUMNS, 1>(a, row, lines, c, depth);
  } else {
    for (; row + 4 * LANES <= rows; row += 4 * LANES) multiply_sides<COLUMNS, 4>(a, row, rows, lines, c, depth);
    for (; row < rows; row += LANES) multiply_sides<COLUMNS, 1>(a, row, rows, lines, c, depth);
  }
}

// --- whichever it is --------------------------------------------------------------

FAST inline void multiply_wide(Matrix a, Matrix b, const float* bias, float* c, int64_t rows, int64_t columns,
                               int64_t depth) {
  const int64_t threads = omp_get_max_threads();
  const Panels panels = pack(b, {}, columns, depth, threads > 1);
  const bool listed = columns % LANES == 0 && columns >= WORTH_LISTS && has_zeros(a, rows, depth);
  const int64_t share = whole((rows + threads - 1) / threads, ROWS);
#pragma omp parallel for if (threads > 1)
  for (int64_t row = 0; row < rows; row += share) {
    const int64_t count = rows - row < share ? rows - row : share;
    (listed ? multiply_listed : multiply_all)({a.from(row, 0), a.outer_stride, a.depth_stride}, panels, bias,
                                              c + row * columns, count, columns);
  }
}

// c = a @ b, [rows, depth] by [depth, columns], c contiguous; with a bias relu(a @ b + bias).
FAST inline void multiply(Matrix a, Matrix b, const float* bias, float* c, int64_t rows, int64_t columns, int64_t depth) {
  if (bias) return multiply_wide(a, b, bias, c, rows, columns, depth);
  switch (columns) {
    case 1: return multiply_narrow<1>(a, b, c, rows, depth);
    case 2: return multiply_narrow<2>(a, b, c, rows, depth);
    case 3: return multiply_narrow<3>(a, b, c, rows, depth);
    case 4: return multiply_narrow<4>(a, b, c, rows, depth);
    default: return multiply_wide(a, b, nullptr, c, rows, columns, depth);
  }
}

}  // namespace rldsl_vectors

extern "C" AOTITorchError aoti_torch_cpu_product_on_vectors(AtenTensorHandle a, AtenTensorHandle b,
                                                            AtenTensorHandle* result) {
  return rldsl_matrices::product(a, b, nullptr, result, rldsl_vectors::multiply);
}

extern "C" AOTITorchError aoti_torch_cpu_layer_on_vectors(AtenTensorHandle a, AtenTensorHandle b, AtenTensorHandle bias,
                                                          AtenTensorHandle* result) {
  const rldsl_matrices::Given given(bias);
  return rldsl_matrices::product(a, b, &given, result, rldsl_vectors::multiply);
}

extern "C" AOTITorchError aoti_torch_cpu_gated_on_vectors(AtenTensorHandle gate, AtenTensorHandle q, AtenTensorHandle w,
                                                          AtenTensorHandle b, AtenTensorHandle* result) {
  using namespace rldsl_matrices;
  const Given gates(gate), left(q), right(w), matrix(b);
  if (gates.stride[2] != 1 || !matrix.in_lines()) return AOTI_TORCH_FAILURE;
  const int64_t members = gates.size[0], rows = gates.size[1], depth = gates.size[2], columns = matrix.size[2];
  float* c;
  const AOTITorchError made = new_result(members, rows, columns, result, &c);
  if (made != AOTI_TORCH_SUCCESS) return made;
  for (int64_t m = 0; m < members; m++)
    rldsl_vectors::multiply_gated({gates.of(m), gates.stride[1], gates.stride[2]}, {left.of(m), left.stride[1]},
                                  {right.of(m), right.stride[2]}, {matrix.of(m), matrix.stride[2], matrix.stride[1]},
                                  c + m * rows * columns, rows, columns, depth);
  return AOTI_TORCH_SUCCESS;
}
