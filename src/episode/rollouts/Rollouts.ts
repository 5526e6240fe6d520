/**
 * Files of rollouts: a line of JSON each, so that they can be written as they come, searched by lines, and read one at a
 * time, however many there are.
 *
 * @example
 * ```ts
 * yield* fs.writeFileString("rollouts.jsonl", rollouts.map(Rollouts.line).join(""))
 * const best = yield* Rollouts.read("rollouts.jsonl").pipe(
 *   Stream.filter(({ totalReward }) => totalReward > 0.9),
 *   Stream.runCollect,
 * )
 * ```
 */
import { type FileSystem, Stream } from "effect"
import { type JsonLinesError, linesOf, valueOf } from "../../formats/jsonLines.ts"
import { Rollout } from "../Rollout.ts"

/** With its end. */
export const line = (rollout: Rollout): string => `${JSON.stringify(rollout)}\n`

const rolloutOf = valueOf(Rollout)

/** The rollouts of a file, in order. A line that isn't one is an error which names it, and what is wrong with it. */
export const read = (path: string): Stream.Stream<Rollout, JsonLinesError, FileSystem.FileSystem> =>
  Stream.mapEffect(linesOf(path), (found) => rolloutOf(path, found))
