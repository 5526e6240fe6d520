import type { Bench } from "./Bench.ts"

/**
 * Compares a benchmark with and without some environment variables. Runs alternate between the two, each in a process of
 * its own, so that other load on the machine slows both. The order within a pair alternates too, so that a machine that
 * slows down steadily favours neither.
 */
export interface Comparison {
  /** The benchmark's value: the median over the rounds. */
  readonly value: number
  readonly against: number
  /** The speed in this environment divided by the speed in the other one: the median over the rounds. */
  readonly ratio: number
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
  measure: (against: boolean) => Promise<number>,
): Promise<Comparison> => {
  const values: Array<number> = []
  const others: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? [false, true] : [true, false]
    for (const against of order) (against ? others : values).push(await measure(against))
  }
  const ratios = values.map((value, round) => (higherIsBetter ? value / others[round] : others[round] / value))
  return { value: median(values), against: median(others), ratio: median(ratios), ratios }
}

const median = (numbers: ReadonlyArray<number>): number => {
  const sorted = numbers.toSorted((a, b) => a - b)
  const half = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2
}
