/**
 * Writes the elementary functions as C, with the arithmetic of `graph/wasm/math.ts` and `graph/wasm/pow.ts` for one number
 * instead of four, so that their results have the same bits. They need no mathematical library.
 */
import {
  atanhSeries,
  cosineSeries,
  exp2Series,
  expHigh,
  expLow,
  expSeries,
  halfPiHigh,
  halfPiLow,
  ln2High,
  ln2Low,
  logarithmSeries,
  rootHalfBits,
  rootHalfBits64,
  roundingMagic,
  roundingMagicBits,
  sineSeries,
  smallestNormal,
  softplusSeries,
  tanhFarthest,
  tanhP,
  tanhQ,
} from "../graph/wasm/coefficients.ts"
import { doubleInC, floatInC } from "./literals.ts"

const f = (value: number): string => floatInC(Math.fround(value))
const hex = (word: number): string => `0x${word.toString(16)}u`

/** Returns the statements that evaluate a polynomial of `x` in the variable `name`. */
const polynomial = (name: string, x: string, [first, ...others]: ReadonlyArray<number>): string =>
  [`float ${name} = ${f(first)};`, ...others.map((one) => `${name} = ${name} * ${x} + ${f(one)};`)].join("\n    ")

const polynomial64 = (name: string, x: string, [first, ...others]: ReadonlyArray<number>): string =>
  [
    `double ${name} = ${doubleInC(first)};`,
    ...others.map((one) => `${name} = ${name} * ${x} + ${doubleInC(one)};`),
  ].join("\n    ")

const sine = (name: "sin" | "cos", shift: 0 | 1) => ({
  needs: ["bits", "of_bits", "nearest"] as const,
  code: `static inline float @${name}(float x) {
    const double d = (double)x;
    const double n = @nearest(d * ${doubleInC(2 / Math.PI)});
    float r = (float)((d - n * ${doubleInC(halfPiHigh)}) - n * ${doubleInC(halfPiLow)});
    const double quarter = n * 0.25;
    const double near = @nearest(quarter);
    const double rest = n - (near > quarter ? near - 1.0 : near) * 4.0;
    const int32_t turn = (rest > 0.0 && rest < 4.0 ? (int32_t)rest : 0) + ${shift};
    r = ${f(0.8)} < r ? ${f(0.8)} : r;
    r = r < ${f(-0.8)} ? ${f(-0.8)} : r;
    const float u = r * r;
    ${polynomial("s", "u", sineSeries)}
    ${polynomial("c", "u", cosineSeries)}
    const float of_sine = r + r * u * s;
    const float of_cosine = (1.0f - 0.5f * u) + u * u * c;
    const uint32_t sign = (uint32_t)(turn & 2) << 30;
    return @of_bits(@bits((turn & 1) != 0 ? of_cosine : of_sine) ^ sign);
}`,
})

const table = {
  bits: {
    needs: [],
    code: `static inline uint32_t @bits(float x) {
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}`,
  },
  of_bits: {
    needs: [],
    code: `static inline float @of_bits(uint32_t word) {
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}`,
  },
  shift: {
    needs: [],
    code: `/* Divides by a power of two and rounds down. */
static inline int32_t @shift(int32_t x, int by) { return x >= 0 ? x >> by : -1 - ((-1 - x) >> by); }`,
  },
  nearest: {
    needs: [],
    code: `/* Rounds to the nearest integer, and halves to even ones. */
static inline double @nearest(double x) {
    uint64_t word;
    const double size = x < 0.0 ? -x : x;
    if (!(size < 4503599627370496.0)) return x;
    double rounded = (size + 4503599627370496.0) - 4503599627370496.0;
    memcpy(&word, &x, sizeof word);
    rounded = rounded < 0.0 ? -rounded : rounded;
    return (word >> 63) != 0 ? -rounded : rounded;
}`,
  },
  abs: {
    needs: ["bits", "of_bits"],
    code: `static inline float @abs(float x) { return @of_bits(@bits(x) & 0x7fffffffu); }`,
  },
  sign: {
    needs: [],
    code: `static inline float @sign(float x) { return x < 0.0f ? -1.0f : x > 0.0f ? 1.0f : x; }`,
  },
  relu: { needs: [], code: `static inline float @relu(float x) { return x < 0.0f ? 0.0f : x; }` },
  minimum: {
    needs: ["bits", "of_bits"],
    code: `static inline float @minimum(float a, float b) {
    if (a != a) return a;
    if (b != b) return b;
    if (a == b) return @of_bits(@bits(a) | @bits(b)); /* -0 is below 0 */
    return a < b ? a : b;
}`,
  },
  maximum: {
    needs: ["bits", "of_bits"],
    code: `static inline float @maximum(float a, float b) {
    if (a != a) return a;
    if (b != b) return b;
    if (a == b) return @of_bits(@bits(a) & @bits(b)); /* -0 is below 0 */
    return a > b ? a : b;
}`,
  },
  to_int: {
    needs: [],
    code: `/* Rounds toward zero. NaN becomes 0, and numbers out of range the nearest one in range. */
static inline int32_t @to_int(float x) {
    if (x != x) return 0;
    if (x >= 2147483648.0f) return 2147483647;
    return x < -2147483648.0f ? -2147483647 - 1 : (int32_t)x;
}`,
  },
  floor: {
    needs: ["abs"],
    code: `static inline float @floor(float x) {
    if (x == 0.0f || !(@abs(x) < 8388608.0f)) return x;
    const float whole = (float)(int32_t)x;
    return whole > x ? whole - 1.0f : whole;
}`,
  },
  sqrt: {
    needs: ["bits", "of_bits"],
    code: `/* Computes the root bit by bit, rounded to the nearest float. */
static inline float @sqrt(float x) {
    if (!(x > 0.0f)) return x == 0.0f ? x : @of_bits(0x7fc00000u);
    const uint32_t word = @bits(x);
    int32_t e = (int32_t)(word >> 23);
    uint32_t m = word & 0x7fffffu;
    if (e == 255) return x;
    if (e == 0) {
        e = 1;
        while ((m & 0x800000u) == 0u) {
            m <<= 1;
            e -= 1;
        }
    }
    m |= 0x800000u;
    e -= 127;
    if ((e & 1) != 0) {
        m <<= 1;
        e -= 1;
    }
    const uint64_t square = (uint64_t)m << 25;
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << 24; bit != 0; bit >>= 1) {
        if ((root + bit) * (root + bit) <= square) root += bit;
    }
    const uint32_t rounded = (uint32_t)((root >> 1) + (root & 1u));
    return @of_bits(((uint32_t)(e / 2 + 127) << 23) + (rounded - 0x800000u));
}`,
  },
  exp: {
    needs: ["bits", "of_bits", "shift"],
    code: `static inline float @exp(float x) {
    float t = ${f(expHigh)} < x ? ${f(expHigh)} : x;
    t = t < ${f(expLow)} ? ${f(expLow)} : t;
    const float shifted = t * ${f(Math.LOG2E)} + ${f(roundingMagic)};
    const float n = shifted - ${f(roundingMagic)};
    float r = n * ${f(-ln2High)} + t;
    r = n * ${f(-ln2Low)} + r;
    ${polynomial("p", "r", expSeries)}
    const float fraction = (p * (r * r) + r) + 1.0f;
    const int32_t e = (int32_t)(@bits(shifted) - ${hex(roundingMagicBits)});
    const int32_t half = @shift(e, 1);
    const float first = @of_bits(((uint32_t)half << 23) + 0x3f800000u);
    const float second = @of_bits(((uint32_t)(e - half) << 23) + 0x3f800000u);
    return fraction * first * second;
}`,
  },
  log: {
    needs: ["bits", "of_bits", "shift"],
    code: `static inline float @log(float x) {
    const int tiny = x < ${f(smallestNormal)};
    const uint32_t word = @bits(tiny ? x * 8388608.0f : x);
    const int32_t e = @shift((int32_t)(word - ${hex(rootHalfBits)}), 23);
    const float s = @of_bits(word - ((uint32_t)e << 23)) - 1.0f;
    const float exponent = (float)e - (tiny ? 23.0f : 0.0f);
    ${polynomial("p", "s", logarithmSeries)}
    const float square = s * s;
    const float low = exponent * ${f(ln2Low)} + square * s * p;
    const float tail = square * -0.5f + low;
    const float value = exponent * ${f(ln2High)} + (s + tail);
    if (x < 0.0f) return @of_bits(0x7fc00000u);
    if (x == 0.0f) return @of_bits(0xff800000u);
    return x < @of_bits(0x7f800000u) ? value : x;
}`,
  },
  tanh: {
    needs: [],
    code: `static inline float @tanh(float x) {
    const float square = x * x;
    const float u = ${f(tanhFarthest)} < square ? ${f(tanhFarthest)} : square;
    ${polynomial("p", "u", tanhP)}
    float q = u + ${f(tanhQ[0])};
    ${tanhQ
      .slice(1)
      .map((one) => `q = q * u + ${f(one)};`)
      .join("\n    ")}
    const float ratio = x * p / q;
    const float below = 1.0f < ratio ? 1.0f : ratio;
    return below < -1.0f ? -1.0f : below;
}`,
  },
  sigmoid: {
    needs: ["exp", "bits", "of_bits"],
    code: `static inline float @sigmoid(float x) {
    const float e = @exp(@of_bits(@bits(x) | 0x80000000u));
    return (x < 0.0f ? e : 1.0f) / (e + 1.0f);
}`,
  },
  softplus: {
    needs: ["exp", "bits", "of_bits"],
    code: `static inline float @softplus(float x) {
    const float e = @exp(@of_bits(@bits(x) | 0x80000000u));
    const float s = e / (e + 2.0f);
    const float z = s * s;
    ${polynomial("p", "z", softplusSeries)}
    return (x < 0.0f ? 0.0f : x) + (z * s * p + (s + s));
}`,
  },
  sin: sine("sin", 0),
  cos: sine("cos", 1),
  pow: {
    needs: ["nearest", "of_bits"],
    code: `static inline float @pow(float base, float power) {
    const double x = (double)base;
    const double y = (double)power;
    uint64_t word;
    uint64_t scale_word;
    double m;
    double scale;
    memcpy(&word, &x, sizeof word);
    const int negative = (word >> 63) != 0;
    word &= 0x7fffffffffffffffu;
    const int infinite = word == 0x7ff0000000000000u;
    const uint64_t from_root = word - 0x${rootHalfBits64.toString(16)}u;
    const int64_t e = (int64_t)(from_root >> 52) - ((from_root >> 63) != 0 ? 4096 : 0);
    word -= (uint64_t)e << 52;
    memcpy(&m, &word, sizeof m);
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    ${polynomial64("series", "z", atanhSeries)}
    double t = y * ((double)e + s * series * ${doubleInC(2 * Math.LOG2E)});
    if (infinite) t = y > 0.0 ? 400.0 : -400.0;
    if (x == 0.0) t = y > 0.0 ? -400.0 : 400.0;
    t = t > 400.0 ? 400.0 : t;
    t = t < -400.0 ? -400.0 : t;
    const double n = @nearest(t);
    const double r = t - n;
    scale_word = (uint64_t)((n == n ? (int64_t)n : 0) + 1023) << 52;
    memcpy(&scale, &scale_word, sizeof scale);
    ${polynomial64("p", "r", exp2Series)}
    double result = p * scale;
    const double near = @nearest(y);
    const double near_half = @nearest(y * 0.5);
    const int whole = near == y;
    if (negative && whole && near_half != y * 0.5) result = -result;
    if (y == 0.0) return 1.0f;
    if (y != y) return power;
    if (x != x) return base;
    if (x < 0.0 && !infinite && !whole) return @of_bits(0x7fc00000u);
    return (float)result;
}`,
  },
} as const

/** The functions that programs in C can call. */
export type CFunction = keyof typeof table

/** Returns the code of functions and of those that they call, each after those that it calls. */
export const functionsInC = (names: Iterable<CFunction>, prefix: string): ReadonlyArray<string> => {
  const written = new Map<CFunction, string>()
  const write = (name: CFunction): void => {
    if (written.has(name)) return
    table[name].needs.forEach(write)
    written.set(name, table[name].code.replaceAll("@", prefix))
  }
  for (const name of names) write(name)
  return [...written.values()]
}
