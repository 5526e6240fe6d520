/**
 * Defines WebAssembly's instructions in C, with the same bits. A vector of L lanes has the type F##L; L is 4, 8 or 16.
 * The code uses vector extensions of GCC and Clang, and x86's own instructions where a few of them replace many.
 *
 * It must be compiled with `-ffp-contract=off`, without options that let a compiler reorder arithmetic.
 */
export const prelude = String.raw`
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE4_1__)
#include <immintrin.h>
#endif
typedef uint32_t u32;
typedef uint64_t u64;
typedef double D2 __attribute__((vector_size(16)));
typedef uint8_t B16 __attribute__((vector_size(16)));
#define inlined static inline __attribute__((always_inline, unused))

/* Keeps a vector in a register, if the processor has registers of its size. */
#if defined(__x86_64__) && defined(__AVX__)
#define in_register8(a) __asm__("" : "+v"(a))
#else
#define in_register8(a)
#endif
#if defined(__x86_64__) && defined(__AVX512F__)
#define in_register16(a) __asm__("" : "+v"(a))
#else
#define in_register16(a)
#endif

/* Numbers of 32 and 64 bits. */
#define i32_add(a, b) ((u32)(a) + (u32)(b))
#define i32_sub(a, b) ((u32)(a) - (u32)(b))
#define i32_mul(a, b) ((u32)(a) * (u32)(b))
#define i32_and(a, b) ((u32)(a) & (u32)(b))
#define i32_or(a, b) ((u32)(a) | (u32)(b))
#define i32_shl(a, b) ((u32)(a) << ((u32)(b) & 31))
#define i32_shr_u(a, b) ((u32)(a) >> ((u32)(b) & 31))
#define i32_eq(a, b) ((u32)((a) == (b)))
#define i32_ne(a, b) ((u32)((a) != (b)))
#define i32_lt_u(a, b) ((u32)((a) < (b)))
#define i32_gt_u(a, b) ((u32)((a) > (b)))
#define i32_gt_s(a, b) ((u32)((int32_t)(a) > (int32_t)(b)))
#define i32_eqz(a) ((u32)((a) == 0))
#define i32_wrap_i64(a) ((u32)(a))
#define i64_add(a, b) ((u64)(a) + (u64)(b))
#define i64_sub(a, b) ((u64)(a) - (u64)(b))
#define i64_eq(a, b) ((u32)((a) == (b)))
#define i64_shl(a, b) ((u64)(a) << ((b) & 63))
#define i64_shr_u(a, b) ((u64)(a) >> ((b) & 63))
#define i64_shr_s(a, b) ((u64)((int64_t)(a) >> ((b) & 63)))
#define i64_extend_i32_u(a) ((u64)(u32)(a))
inlined u64 i64_reinterpret_f64(double a) { u64 r; memcpy(&r, &a, 8); return r; }
inlined double f64_reinterpret_i64(u64 a) { double r; memcpy(&r, &a, 8); return r; }
inlined u64 i64_trunc_sat_f64_s(double a) {
  if (!(a == a)) return 0;
  if (a >= 9223372036854775808.0) return (u64)INT64_MAX;
  return a < -9223372036854775808.0 ? (u64)INT64_MIN : (u64)(int64_t)a;
}
#define f32_add(a, b) ((a) + (b))
#define f32_demote_f64(a) ((float)(a))
#define f64_promote_f32(a) ((double)(a))
#define f64_add(a, b) ((a) + (b))
#define f64_sub(a, b) ((a) - (b))
#define f64_mul(a, b) ((a) * (b))
#define f64_div(a, b) ((a) / (b))
#define f64_eq(a, b) ((u32)((a) == (b)))
#define f64_ne(a, b) ((u32)((a) != (b)))
#define f64_lt(a, b) ((u32)((a) < (b)))
#define f64_gt(a, b) ((u32)((a) > (b)))
#define f64_abs(a) f64_reinterpret_i64(i64_reinterpret_f64(a) & 0x7fffffffffffffffULL)
#define f64_neg(a) f64_reinterpret_i64(i64_reinterpret_f64(a) ^ 0x8000000000000000ULL)
#define f64_floor(a) __builtin_floor(a)
#define f64_nearest(a) __builtin_rint(a)
#define f64_convert_i64_s(a) ((double)(int64_t)(a))
inlined double f64_min(double a, double b) {
  if (!(a == a) || !(b == b)) return a + b;
  if (a == b) return f64_reinterpret_i64(i64_reinterpret_f64(a) | i64_reinterpret_f64(b));
  return a < b ? a : b;
}
inlined double f64_max(double a, double b) {
  if (!(a == a) || !(b == b)) return a + b;
  if (a == b) return f64_reinterpret_i64(i64_reinterpret_f64(a) & i64_reinterpret_f64(b));
  return a > b ? a : b;
}
inlined u32 i32_load(const unsigned char *p) { u32 r; memcpy(&r, p, 4); return r; }
inlined float f32_load(const unsigned char *p) { float r; memcpy(&r, p, 4); return r; }
#define i32_load8_u(p) ((u32)*(p))
inlined void i32_store(unsigned char *p, u32 a) { memcpy(p, &a, 4); }
inlined void f32_store(unsigned char *p, float a) { memcpy(p, &a, 4); }
inlined void i32_store8(unsigned char *p, u32 a) { *p = (unsigned char)a; }

/* Vectors of any length: types, and operations on each lane. */
#define FOR(L) for (int i = 0; i < (L); i++)
#define WIDTH(L) \
  typedef float F##L __attribute__((vector_size(4 * L))); \
  typedef int32_t I##L __attribute__((vector_size(4 * L))); \
  typedef uint32_t U##L __attribute__((vector_size(4 * L))); \
  typedef float F##L##u __attribute__((vector_size(4 * L), aligned(1), may_alias)); \
  inlined F##L filled##L(u32 a) { return (F##L)((U##L){0} + a); } \
  inlined F##L splat##L(float a) { u32 bits; memcpy(&bits, &a, 4); return filled##L(bits); } \
  inlined F##L select##L(F##L a, F##L b, F##L m) { return (F##L)(((I##L)a & (I##L)m) | ((I##L)b & ~(I##L)m)); } \
  inlined F##L smaller##L(I##L a, I##L b) { return select##L((F##L)a, (F##L)b, (F##L)(a < b)); } \
  inlined F##L larger##L(I##L a, I##L b) { return select##L((F##L)a, (F##L)b, (F##L)(a > b)); } \
  inlined F##L truncated##L(F##L a) { \
    I##L high = a >= 2147483648.0f, low = a < -2147483648.0f, inside = (a == a) & ~high & ~low; \
    I##L whole = __builtin_convertvector((F##L)((I##L)a & inside), I##L); \
    return (F##L)(whole | (high & INT32_MAX) | (low & INT32_MIN)); \
  }
#define GENERIC(L) \
  inlined F##L rooted##L(F##L a) { F##L r; FOR(L) r[i] = __builtin_sqrtf(a[i]); return r; } \
  inlined F##L floored##L(F##L a) { F##L r; FOR(L) r[i] = __builtin_floorf(a[i]); return r; } \
  inlined F##L pmin##L(F##L a, F##L b) { return select##L(b, a, (F##L)(b < a)); } \
  inlined F##L pmax##L(F##L a, F##L b) { return select##L(b, a, (F##L)(a < b)); }
/* x86 returns its second operand where the numbers are equal or one is NaN. */
#define X86(L, T, P) \
  inlined F##L rooted##L(F##L a) { return (F##L)P##_sqrt_ps((T)a); } \
  inlined F##L pmin##L(F##L a, F##L b) { return (F##L)P##_min_ps((T)b, (T)a); } \
  inlined F##L pmax##L(F##L a, F##L b) { return (F##L)P##_max_ps((T)b, (T)a); }
#define EXTREMES(L) \
  inlined F##L fmin##L(F##L a, F##L b) { return (F##L)((I##L)pmin##L(a, b) | (I##L)pmin##L(b, a)); } \
  inlined F##L fmax##L(F##L a, F##L b) { \
    I##L unordered = ~((a == a) & (b == b)); \
    return (F##L)(((I##L)pmax##L(a, b) & (I##L)pmax##L(b, a)) | unordered); \
  }
WIDTH(4)
#if defined(__SSE4_1__)
X86(4, __m128, _mm)
inlined F4 floored4(F4 a) { return (F4)_mm_floor_ps((__m128)a); }
#else
GENERIC(4)
#endif
EXTREMES(4)
#if LANES >= 8
WIDTH(8)
#if defined(__AVX2__)
X86(8, __m256, _mm256)
inlined F8 floored8(F8 a) { return (F8)_mm256_floor_ps((__m256)a); }
#else
GENERIC(8)
#endif
EXTREMES(8)
#endif
#if LANES >= 16
WIDTH(16)
#if defined(__AVX512F__)
X86(16, __m512, _mm512)
inlined F16 floored16(F16 a) {
  return (F16)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
#else
GENERIC(16)
#endif
EXTREMES(16)
#endif

#define INTEGERS(L, a, op, b) ((F##L)((I##L)(a) op (I##L)(b)))
#define UNSIGNED(L, a, op, b) ((F##L)((U##L)(a) op (U##L)(b)))
#define f32x4_add(L, a, b) ((a) + (b))
#define f32x4_sub(L, a, b) ((a) - (b))
#define f32x4_mul(L, a, b) ((a) * (b))
#define f32x4_div(L, a, b) ((a) / (b))
#define f32x4_eq(L, a, b) ((F##L)((a) == (b)))
#define f32x4_ne(L, a, b) ((F##L)((a) != (b)))
#define f32x4_lt(L, a, b) ((F##L)((a) < (b)))
#define f32x4_gt(L, a, b) ((F##L)((a) > (b)))
#define f32x4_le(L, a, b) ((F##L)((a) <= (b)))
#define f32x4_ge(L, a, b) ((F##L)((a) >= (b)))
#define f32x4_abs(L, a) ((F##L)((I##L)(a) & INT32_MAX))
#define f32x4_neg(L, a) ((F##L)((I##L)(a) ^ INT32_MIN))
#define f32x4_sqrt(L, a) rooted##L(a)
#define f32x4_floor(L, a) floored##L(a)
#define f32x4_pmin(L, a, b) pmin##L(a, b)
#define f32x4_pmax(L, a, b) pmax##L(a, b)
#define f32x4_min(L, a, b) fmin##L(a, b)
#define f32x4_max(L, a, b) fmax##L(a, b)
#define f32x4_convert(L, a) __builtin_convertvector((I##L)(a), F##L)
#define f32x4_splat(L, a) splat##L(a)
#define i32x4_splat(L, a) filled##L(a)
#define i32x4_eq(L, a, b) INTEGERS(L, a, ==, b)
#define i32x4_ne(L, a, b) INTEGERS(L, a, !=, b)
#define i32x4_lt(L, a, b) INTEGERS(L, a, <, b)
#define i32x4_gt(L, a, b) INTEGERS(L, a, >, b)
#define i32x4_le(L, a, b) INTEGERS(L, a, <=, b)
#define i32x4_ge(L, a, b) INTEGERS(L, a, >=, b)
#define i32x4_neg(L, a) ((F##L)(-(U##L)(a)))
#define i32x4_add(L, a, b) UNSIGNED(L, a, +, b)
#define i32x4_sub(L, a, b) UNSIGNED(L, a, -, b)
#define i32x4_mul(L, a, b) UNSIGNED(L, a, *, b)
#define i32x4_min(L, a, b) smaller##L((I##L)(a), (I##L)(b))
#define i32x4_max(L, a, b) larger##L((I##L)(a), (I##L)(b))
#define i32x4_shl(L, a, n) ((F##L)((U##L)(a) << (int)((n) & 31)))
#define i32x4_shr_s(L, a, n) ((F##L)((I##L)(a) >> (int)((n) & 31)))
#define i32x4_trunc_sat(L, a) truncated##L(a)
#define v128_and(L, a, b) INTEGERS(L, a, &, b)
#define v128_or(L, a, b) INTEGERS(L, a, |, b)
#define v128_xor(L, a, b) INTEGERS(L, a, ^, b)
#define v128_not(L, a) ((F##L)(~(I##L)(a)))
#define v128_bitselect(L, a, b, m) select##L(a, b, m)
#define v128_load(L, p) ((F##L)*(const F##L##u *)(p))
#define v128_load32_splat(L, p) filled##L(i32_load(p))
#define v128_store(L, p, a) (*(F##L##u *)(p) = (a))

/* Vectors of 16 bytes. */
#define constant4(a, b, c, d) ((F4)(U4){a, b, c, d})
#define v128_load32_zero(L, p) constant4(i32_load(p), 0, 0, 0)
inlined F4 with_byte(F4 a, int lane, unsigned char byte) { B16 r = (B16)a; r[lane] = byte; return (F4)r; }
inlined F4 with_word(F4 a, int lane, u32 word) { U4 r = (U4)a; r[lane] = word; return (F4)r; }
#define v128_load8_lane(L, p, a, lane) with_byte(a, lane, *(p))
#define v128_load32_lane(L, p, a, lane) with_word(a, lane, i32_load(p))
#define v128_store8_lane(L, p, a, lane) (*(p) = ((B16)(a))[lane])
#define v128_store32_lane(L, p, a, lane) i32_store(p, ((U4)(a))[lane])
inlined void v128_store64(unsigned char *p, F4 a) { memcpy(p, &a, 8); }
#define v128_store64_lane(L, p, a, lane) v128_store64(p, a)
#define f32x4_extract_lane(L, a, lane) ((a)[lane])
inlined F4 replaced(F4 a, float b, int lane) { a[lane] = b; return a; }
#define f32x4_replace_lane(L, a, b, lane) replaced(a, b, lane)
#if defined(__clang__)
#define v128_shuffle(L, a, b, i, j, k, l) ((F4)__builtin_shufflevector((I4)(a), (I4)(b), i, j, k, l))
#else
#define v128_shuffle(L, a, b, i, j, k, l) ((F4)__builtin_shuffle((I4)(a), (I4)(b), (I4){i, j, k, l}))
#endif
inlined F4 extended8(F4 a) { B16 b = (B16)a; return (F4)(B16){b[0], 0, b[1], 0, b[2], 0, b[3], 0, b[4], 0, b[5], 0, b[6], 0, b[7], 0}; }
#define i16x8_extend_low_u8(L, a) extended8(a)
inlined F4 extended16(F4 a) { uint16_t h[8]; memcpy(h, &a, 16); return constant4(h[0], h[1], h[2], h[3]); }
#define i32x4_extend_low_u16(L, a) extended16(a)
/* Only masks of 0 and 1 are narrowed, so nothing is saturated. */
inlined F4 narrowed32(F4 a, F4 b) {
  U4 x = (U4)a, y = (U4)b;
  return constant4(x[0] | x[1] << 16, x[2] | x[3] << 16, y[0] | y[1] << 16, y[2] | y[3] << 16);
}
#define i16x8_narrow_s32(L, a, b) narrowed32(a, b)
inlined F4 narrowed16(F4 a, F4 b) {
  uint16_t h[16]; unsigned char c[16]; F4 r;
  memcpy(h, &a, 16); memcpy(h + 8, &b, 16);
  FOR(16) c[i] = (unsigned char)h[i];
  memcpy(&r, c, 16);
  return r;
}
#define i8x16_narrow_u16(L, a, b) narrowed16(a, b)
inlined F4 f64x2_splatted(double a) { return (F4)(D2){a, a}; }
#define f64x2_splat(L, a) f64x2_splatted(a)
#define f64x2_sub(L, a, b) ((F4)((D2)(a) - (D2)(b)))
#define f64x2_mul(L, a, b) ((F4)((D2)(a) * (D2)(b)))
inlined F4 f64x2_floored(D2 a) { return (F4)(D2){__builtin_floor(a[0]), __builtin_floor(a[1])}; }
#define f64x2_floor(L, a) f64x2_floored((D2)(a))
inlined F4 f64x2_rounded(D2 a) { return (F4)(D2){__builtin_rint(a[0]), __builtin_rint(a[1])}; }
#define f64x2_nearest(L, a) f64x2_rounded((D2)(a))
inlined F4 promoted(F4 a) { return (F4)(D2){(double)a[0], (double)a[1]}; }
#define f64x2_promote_low(L, a) promoted(a)
inlined F4 demoted(D2 a) { return (F4){(float)a[0], (float)a[1], 0, 0}; }
#define f64x2_demote_zero(L, a) demoted((D2)(a))
inlined u32 whole32(double a) {
  if (!(a == a)) return 0;
  if (a >= 2147483648.0) return (u32)INT32_MAX;
  return a <= -2147483649.0 ? (u32)INT32_MIN : (u32)(int32_t)a;
}
inlined F4 truncated64(D2 a) { return constant4(whole32(a[0]), whole32(a[1]), 0, 0); }
#define i32x4_trunc_sat_f64_zero(L, a) truncated64((D2)(a))

/* Vectors of 16 bytes as parts of wider ones. */
#define PARTS(L) \
  inlined F4 part##L(F##L a, int i) { F4 r; memcpy(&r, (const char *)&a + 16 * i, 16); return r; } \
  inlined F##L with##L(F##L a, int i, F4 b) { memcpy((char *)&a + 16 * i, &b, 16); return a; }
#if LANES >= 8
PARTS(8)
#endif
#if LANES >= 16
PARTS(16)
#endif
`
