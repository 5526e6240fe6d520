/** Takes the samples out of a micro-batch, as examples for a server. */
import type { MicroBatch } from "../../batches/MicroBatch.ts"

/** A sample: its tokens, for each of them the token that follows, and the index of that token in the micro-batch. */
export interface Example {
  readonly tokens: Int32Array
  readonly targets: Int32Array
  /** The indices of the targets in the micro-batch. */
  readonly places: Int32Array
}

/**
 * Returns the samples of a micro-batch in their order. A sample of one token has no target, and is left out.
 *
 * @example
 * ```ts
 * examplesOf(microBatch).map(({ targets }) => targets.length)
 * ```
 */
export const examplesOf = ({
  tokens,
  contexts,
  sequences,
  sequenceCount,
}: Pick<MicroBatch, "tokens" | "contexts" | "sequences" | "sequenceCount">): ReadonlyArray<Example> => {
  const lasts = new Int32Array(sequenceCount).fill(-1)
  for (let at = 0; at < sequences.length; at++) if (sequences[at] >= 0) lasts[sequences[at]] = at
  return [...lasts].flatMap((last) => {
    const places: Array<number> = []
    for (let at = last; at >= 0; at = contexts[at]) places.push(at)
    const indices = Int32Array.from(places.reverse())
    if (indices.length < 2) return []
    const ids = indices.map((at) => tokens[at])
    return [{ tokens: ids.slice(0, -1), targets: ids.slice(1), places: indices.slice(1) }]
  })
}

/** Returns the numbers of an example's targets in an array of the micro-batch. */
export const columnOf = ({ places }: Example, numbers: ArrayLike<number>): Float32Array =>
  Float32Array.from(places, (at) => numbers[at])

/** Writes the log-probabilities of all targets into an array of the micro-batch's size, with zeros elsewhere. */
export const scattered = (
  examples: ReadonlyArray<Example>,
  logProbabilities: ReadonlyArray<Float32Array>,
  size: number,
): Float32Array => {
  const all = new Float32Array(size)
  examples.forEach(({ places }, example) =>
    places.forEach((at, target) => (all[at] = logProbabilities[example][target])),
  )
  return all
}
