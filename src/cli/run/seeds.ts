import { Effect } from "effect"
import { shortened } from "../../config/text.ts"
import { usageError } from "../output/output.ts"

/** `--seeds` accepts at most this many seeds, since each seed starts a separate training. */
const mostSeeds = 10_000

/** Parses the seeds of `--seeds`: `1..10`, `1,2,5`, or a mixture of both. */
export const parseSeeds = Effect.fnUntraced(function* (text: string) {
  const wrong = (problem: string) => usageError(`--seeds ${shortened(text)}: ${problem}`)
  const ranges = text.split(",").map((part) => {
    const [, from, to = from] = /^(\d+)(?:\.\.(\d+))?$/.exec(part.trim()) ?? []
    return { from: Number(from), length: Number(to) - Number(from) + 1 }
  })
  const total = ranges.reduce((sum, { length }) => sum + length, 0)
  const malformed = "expected seeds like 1..10 or 1,2,5, none of them twice"
  if (!ranges.every(({ length }) => length >= 1)) return yield* wrong(malformed)
  if (total > mostSeeds) return yield* wrong(`expected at most ${mostSeeds} seeds, found ${total}`)
  const seeds = ranges.flatMap(({ from, length }) => Array.from({ length }, (_, index) => from + index))
  return new Set(seeds).size === seeds.length ? seeds : yield* wrong(malformed)
})
