/** Writes numbers as constants of C, from which a compiler reads the same bits. */
import { type DType, type TensorData } from "../graph/Tensor.ts"

/** The types of C that hold the elements of tensors. A bool is 0 or 1. */
export const typesInC: Readonly<Record<DType, string>> = {
  f32: "float",
  i32: "int32_t",
  i8: "signed char",
  bool: "unsigned char",
}

const withPoint = (digits: string): string => (/[.e]/.test(digits) ? digits : `${digits}.0`)

/** Returns a float32 as a constant of C. Nine digits are enough to tell all float32 numbers apart. */
export const floatInC = (value: number): string => {
  if (value === Infinity) return "INFINITY"
  if (value === -Infinity) return "-INFINITY"
  if (Object.is(value, -0)) return "-0.0f"
  const eight = Number(value.toPrecision(8))
  return `${withPoint(String(Math.fround(eight) === value ? eight : Number(value.toPrecision(9))))}f`
}

/** Returns a double as a constant of C: the shortest digits that give the same double. */
export const doubleInC = (value: number): string => (Object.is(value, -0) ? "-0.0" : withPoint(String(value)))

/** Returns an int32 as a constant of C. The smallest one has no constant of its own. */
const intInC = (value: number): string => (value === -0x80000000 ? "(-2147483647 - 1)" : String(value))

export const numberInC = (dtype: DType, value: number): string =>
  dtype === "f32" ? floatInC(Math.fround(value)) : intInC(value)

const numbersOfLine = 8

/** Returns the declaration of an array of constants. */
export const arrayInC = (name: string, dtype: DType, values: TensorData): string => {
  const texts = Array.from(values, (value) => numberInC(dtype, value))
  const lines = Array.from(
    { length: Math.ceil(texts.length / numbersOfLine) },
    (_, line) => `    ${texts.slice(line * numbersOfLine, (line + 1) * numbersOfLine).join(", ")}`,
  )
  return `static const ${typesInC[dtype]} ${name}[${values.length}] = {\n${lines.join(",\n")}\n};`
}
