/** Adds numbers within limits to networks, also only the multiples of a whole number. */
import type { Plain } from "../../base/config/plain.ts"
import { addInteger, addNumber, addText } from "./jsonParts.ts"
import { DigitWriter } from "./DigitWriter.ts"
import { formatError, type NetworkBuilder } from "./Network.ts"

/** The largest magnitude of a number with a limit, times 10^decimals, so that it is exact. */
const mostScaled = 10 ** 15 - 1
/** The largest number of decimals of a number with a limit. */
const mostDecimals = 6
/** The largest number of which multiples are told apart, because each remainder is a state of each digit. */
const mostDivisor = 1000

interface LimitedNumber {
  readonly schema: Plain
  readonly isInteger: boolean
  readonly path: string
}

/** Adds the numbers that fit a schema. */
export const addLimited = (
  builder: NetworkBuilder,
  { schema, isInteger, path }: LimitedNumber,
  from: number,
  to: number,
): void => {
  const limitOf = (key: string): number | undefined => {
    const value = schema[key]
    if (value === undefined) return undefined
    if (typeof value !== "number" || !Number.isFinite(value)) throw formatError(`${path}.${key}`, "expected a number")
    return value
  }
  const [least, above] = [limitOf("minimum"), limitOf("exclusiveMinimum")]
  const [most, below] = [limitOf("maximum"), limitOf("exclusiveMaximum")]
  const divisor = divisorOf(limitOf("multipleOf"), `${path}.multipleOf`)
  const isWhole = isInteger || divisor !== undefined
  if ([least, above, most, below, divisor].every((limit) => limit === undefined))
    return isWhole ? addInteger(builder, from, to) : addNumber(builder, from, to)
  for (let decimals = 0; decimals <= (isWhole ? 0 : mostDecimals); decimals++) {
    const scale = 10 ** decimals
    const low = Math.max(
      -mostScaled,
      scaledUp(least, scale),
      above === undefined ? -Infinity : scaledDown(above, scale) + 1,
    )
    const high = Math.min(
      mostScaled,
      scaledDown(most, scale),
      below === undefined ? Infinity : scaledUp(below, scale) - 1,
    )
    if (low > high) continue
    const largest = Math.max(Math.abs(low), Math.abs(high))
    const digits = new DigitWriter(builder, { decimals, divisor: divisor ?? 1, largest }, to)
    digits.addBetween(Math.max(low, 0), high, from)
    if (low < 0) digits.addBetween(Math.max(1, -high), -low, addText(builder, from, "-"))
  }
}

/** Checks the number of which others are multiples. */
const divisorOf = (multipleOf: number | undefined, path: string): number | undefined => {
  if (multipleOf === undefined) return undefined
  if (Number.isInteger(multipleOf) && multipleOf >= 1 && multipleOf <= mostDivisor) return multipleOf
  throw formatError(path, `expected a whole number from 1 to ${mostDivisor}; leave it out otherwise`)
}

/** Returns the least whole number that is not below a limit times `scale`; without a limit, −∞. */
const scaledUp = (limit: number | undefined, scale: number): number => {
  if (limit === undefined) return -Infinity
  if (Math.abs(limit * scale) > mostScaled) return Math.sign(limit) * (mostScaled + 1)
  // A product may be rounded to either side, so take the first whole number that is not below the limit itself.
  let whole = Math.floor(limit * scale) - 1
  while (whole / scale < limit) whole++
  return whole
}

/** Returns the largest whole number that is not above a limit times `scale`; without a limit, ∞. */
const scaledDown = (limit: number | undefined, scale: number): number =>
  limit === undefined ? Infinity : -scaledUp(-limit, scale)
