import { Effect } from "effect"
import { UsageError } from "./UsageError.ts"

/** `1..10`, `1,2,5`, or a mixture. */
export const parseSeeds = (text: string): Effect.Effect<ReadonlyArray<number>, UsageError> => {
  const seeds = text.split(",").flatMap((part) => {
    const [, from, to = from] = /^(\d+)(?:\.\.(\d+))?$/.exec(part.trim()) ?? []
    const length = Number(to) - Number(from) + 1
    return from === undefined || !(length >= 1 && length <= 10_000)
      ? [undefined]
      : Array.from({ length }, (_, index) => Number(from) + index)
  })
  const known = seeds.filter((seed) => seed !== undefined)
  const isFine = known.length === seeds.length && new Set(known).size === known.length
  return isFine
    ? Effect.succeed(known)
    : Effect.fail(
        new UsageError({ message: `--seeds ${text}: expected seeds like 1..10 or 1,2,5, none of them twice` }),
      )
}
