import { bootstrap, quantile } from "../src/base/statistics/resampling.ts"
import type { Bench } from "./Bench.ts"

/**
 * Compares a benchmark with a rival: other environment variables, another revision, or another program. Runs alternate
 * between the two, each in a process of its own, so that other load on the machine slows both. The order within a pair
 * alternates too, so that a machine that slows down steadily favours neither.
 */
export interface Comparison {
  /** The benchmark's value: the median over the rounds. */
  readonly value: number
  /** The rival's value: the median over the rounds. */
  readonly against: number
  /** The speed divided by the rival's speed: the median over the rounds. */
  readonly ratio: number
  /** The confidence interval of the ratio, by the bootstrap. */
  readonly interval: readonly [low: number, high: number]
  readonly ratios: ReadonlyArray<number>
}

/** Parses `NAME=VALUE`; undefined if the text has another form. */
export const variableOf = (text: string): readonly [name: string, value: string] | undefined => {
  const [, name, value] = /^([A-Za-z_]\w*)=(.*)$/s.exec(text) ?? []
  return name === undefined || value === undefined ? undefined : [name, value]
}

export const compare = async (
  rounds: number,
  { higherIsBetter }: Pick<Bench, "higherIsBetter">,
  measure: (isRival: boolean) => Promise<number>,
): Promise<Comparison> => {
  const values: Array<number> = []
  const others: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? [false, true] : [true, false]
    for (const isRival of order) (isRival ? others : values).push(await measure(isRival))
  }
  const ratios = values.map((value, round) => (higherIsBetter ? value / others[round] : others[round] / value))
  const interval = bootstrap(ratios, median)
  return { value: median(values), against: median(others), ratio: median(ratios), interval, ratios }
}

const median = (numbers: ReadonlyArray<number>): number =>
  quantile(
    numbers.toSorted((a, b) => a - b),
    0.5,
  )
