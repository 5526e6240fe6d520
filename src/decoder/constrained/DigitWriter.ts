/** Adds decimal numbers between two numbers to networks, digit by digit. */
import type { NetworkBuilder } from "./Network.ts"

interface DigitSettings {
  /** The number of digits after the point. All numbers are given times 10^decimals. */
  readonly decimals: number
  /** Only multiples of this number are added. */
  readonly divisor: number
  /** The largest number that is added. */
  readonly largest: number
}

/** The digits of the limits of numbers with the same number of digits. */
interface DigitLimits {
  readonly low: string
  readonly high: string
}

/** The digits of a number that were read, all of which are those of the lower limit, of the upper one, or of both. */
interface DigitsRead {
  readonly count: number
  readonly isLow: boolean
  readonly isHigh: boolean
  /** The remainder of the digits as a number. */
  readonly remainder: number
}

const zero = 0x30
const point = 0x2e

export class DigitWriter {
  private readonly builder: NetworkBuilder
  private readonly settings: DigitSettings
  private readonly to: number
  /** The states before a number of any further digits, for each number of digits and each remainder of those before. */
  private readonly free: ReadonlyArray<ReadonlyArray<number>>

  constructor(builder: NetworkBuilder, settings: DigitSettings, to: number) {
    this.builder = builder
    this.settings = settings
    this.to = to
    const { decimals, divisor, largest } = settings
    const most = Math.max(decimals + 1, String(largest).length) - 1
    const free: Array<ReadonlyArray<number>> = []
    // More digits come first, since states should lead to higher numbers.
    for (let left = most; left > 0; left--) free[left] = Array.from({ length: divisor }, () => builder.state())
    this.free = free
    for (let left = most; left > 0; left--)
      for (const [remainder, state] of free[left].entries())
        this.addDigits(this.afterPoint(state, left), 0, 9, (digit) => this.freeState(left - 1, remainder, digit))
  }

  /** Adds the numbers from `least` to `most`, both at least 0. */
  addBetween(least: number, most: number, from: number): void {
    if (least > most) return
    const shortest = this.settings.decimals + 1
    const longest = Math.max(shortest, String(most).length)
    for (let length = Math.max(shortest, String(least).length); length <= longest; length++) {
      const low = Math.max(least, length === shortest ? 0 : 10 ** (length - 1))
      const high = Math.min(most, 10 ** length - 1)
      const limits = { low: String(low).padStart(length, "0"), high: String(high).padStart(length, "0") }
      this.addRest(limits, { count: 0, isLow: true, isHigh: true, remainder: 0 }, from)
    }
  }

  /** Adds the digits after those that were read. */
  private addRest(limits: DigitLimits, read: DigitsRead, from: number): void {
    const { low, high } = limits
    const { count, isLow, isHigh, remainder } = read
    const left = low.length - count
    const [least, most] = [isLow ? Number(low[count]) : 0, isHigh ? Number(high[count]) : 9]
    this.addDigits(this.afterPoint(from, left), least, most, (digit) => {
      const next = { isLow: isLow && digit === least, isHigh: isHigh && digit === most }
      if (left === 1 || (!next.isLow && !next.isHigh)) return this.freeState(left - 1, remainder, digit)
      const state = this.builder.state()
      this.addRest(limits, { count: count + 1, ...next, remainder: this.after(remainder, digit) }, state)
      return state
    })
  }

  /** Adds the point if it comes before the last `left` digits. Returns the state after it. */
  private afterPoint(from: number, left: number): number {
    return left === this.settings.decimals ? this.builder.literal(from, [point]) : from
  }

  private after(remainder: number, digit: number): number {
    return (remainder * 10 + digit) % this.settings.divisor
  }

  /** Returns the state after a digit from which `left` more follow; undefined if the number is no multiple. */
  private freeState(left: number, before: number, digit: number): number | undefined {
    const remainder = this.after(before, digit)
    if (left > 0) return this.free[left][remainder]
    return remainder === 0 ? this.to : undefined
  }

  /** Adds transitions for the digits from `least` to `most`, one for all neighbours that lead to the same state. */
  private addDigits(from: number, least: number, most: number, stateOf: (digit: number) => number | undefined): void {
    let first = least
    let before = stateOf(least)
    for (let digit = least + 1; digit <= most + 1; digit++) {
      const state = digit > most ? undefined : stateOf(digit)
      if (state === before && digit <= most) continue
      if (before !== undefined) this.builder.read(from, zero + first, zero + digit - 1, before)
      first = digit
      before = state
    }
  }
}
