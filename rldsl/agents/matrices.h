// What products of float32 matrices share, on whichever part of a processor they are done.
//
// Included into the code of a compiled step; see products.py.
#pragma once
#include <immintrin.h>
#include <omp.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace rldsl_matrices {

// Every library of a process has functions of its own.
#if defined(__clang__)
#define FAST static __attribute__((target("avx512f,avx512bw,avx512vl")))
#define FAST_METHOD __attribute__((target("avx512f,avx512bw,avx512vl")))
#define UNROLLED _Pragma("unroll")
#else  // inductor hardly optimizes what is around its kernels
#define FAST static __attribute__((target("avx512f,avx512bw,avx512vl"), optimize("O3")))
#define FAST_METHOD __attribute__((target("avx512f,avx512bw,avx512vl"), optimize("O3")))
#define UNROLLED _Pragma("GCC unroll 16")  // what such a loop indexes can stay in registers
#endif

// A matrix on the left has its rows outside, one on the right its columns; along the depth they meet.
struct Matrix {
  const float* at;
  int64_t outer_stride, depth_stride;  // one of them is 1

  const float* from(int64_t outer, int64_t depth) const { return at + outer * outer_stride + depth * depth_stride; }
};

// Memory of a thread that it keeps.
template <typename Item>
struct Room {
  Item* at = nullptr;
  int64_t size = 0;

  Item* of(int64_t items) {
    if (items > size) {
      std::free(at);
      at = static_cast<Item*>(std::aligned_alloc(64, (items * sizeof(Item) + 63) / 64 * 64));
      size = at ? items : 0;
      if (!at) throw std::bad_alloc();
    }
    return at;
  }
  ~Room() { std::free(at); }
};

// 16 x 16 numbers of 32 bits change places across the diagonal.
FAST inline void transpose(__m512i r[16]) {
  __m512i t[16];
  UNROLLED
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  UNROLLED
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  UNROLLED
  for (int i = 0; i < 4; i++) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 8] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  UNROLLED
  for (int i = 0; i < 4; i++) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xdd);
  }
}

// A tensor that a compiled step hands over.
struct Given {
  int64_t *size, *stride;
  void* data;

  explicit Given(AtenTensorHandle tensor) {
    aoti_torch_get_sizes(tensor, &size);
    aoti_torch_get_strides(tensor, &stride);
    aoti_torch_get_data_ptr(tensor, &data);
  }
  const float* of(int64_t member) const { return static_cast<const float*>(data) + member * stride[0]; }
  bool in_lines() const { return stride[1] == 1 || stride[2] == 1; }
};

static AOTITorchError new_result(int64_t members, int64_t rows, int64_t columns, AtenTensorHandle* result,
                                 float** data) {
  const int64_t size[] = {members, rows, columns}, stride[] = {rows * columns, columns, 1};
  const AOTITorchError made = aoti_torch_empty_strided(3, size, stride, aoti_torch_dtype_float32(),
                                                       aoti_torch_device_type_cpu(), 0, result);
  if (made != AOTI_TORCH_SUCCESS) return made;
  void* at;
  aoti_torch_get_data_ptr(*result, &at);
  *data = static_cast<float*>(at);
  return made;
}

// torch.bmm of float32 by a function for one member: c = a @ b, c contiguous; the function knows what a bias is for, if
// there is one. The result is new.
using Multiply = void (*)(Matrix a, Matrix b, const float* bias, float* c, int64_t rows, int64_t columns, int64_t depth);

static AOTITorchError product(AtenTensorHandle a, AtenTensorHandle b, const Given* bias, AtenTensorHandle* result,
                              Multiply multiply) {
  const Given left(a), right(b);
  if (!left.in_lines() || !right.in_lines() || (bias && bias->stride[2] != 1)) return AOTI_TORCH_FAILURE;
  const int64_t rows = left.size[1], depth = left.size[2], columns = right.size[2];
  float* c;
  const AOTITorchError made = new_result(left.size[0], rows, columns, result, &c);
  if (made != AOTI_TORCH_SUCCESS) return made;
  for (int64_t m = 0; m < left.size[0]; m++)
    multiply({left.of(m), left.stride[1], left.stride[2]}, {right.of(m), right.stride[2], right.stride[1]},
             bias ? bias->of(m) : nullptr, c + m * rows * columns, rows, columns, depth);
  return AOTI_TORCH_SUCCESS;
}

}  // namespace rldsl_matrices
