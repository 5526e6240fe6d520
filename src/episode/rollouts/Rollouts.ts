/**
 * Files of rollouts with a line of JSON for each, which can be appended to, searched by lines, and read one at a time.
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

/** Encodes a rollout as a line with its line feed. */
export const line = (rollout: Rollout): string => `${JSON.stringify(rollout)}\n`

const rolloutOf = valueOf(Rollout)

/** Reads the rollouts of a file, in order. An invalid line is an error that names the line and the problem. */
export const read = (path: string): Stream.Stream<Rollout, JsonLinesError, FileSystem.FileSystem> =>
  Stream.mapEffect(linesOf(path), (line) => rolloutOf(path, line))
