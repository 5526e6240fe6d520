/**
 * Encodes rollouts for files with one line of JSON for each, and reads such files one rollout at a time. The trainings
 * and evaluations of language-model agents write them.
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
import type { FormatError } from "../../../base/formats/FormatError.ts"
import { linesOf, valueOf } from "../../../base/formats/jsonLines.ts"
import { Rollout } from "../Rollout.ts"

/** Encodes a rollout as a line with its line feed. */
export const line = (rollout: Rollout): string => `${JSON.stringify(rollout)}\n`

const rolloutOf = valueOf(Rollout)

/** Reads the rollouts of a file, in order. An invalid line is an error that names the line and the problem. */
export const read = (path: string): Stream.Stream<Rollout, FormatError, FileSystem.FileSystem> =>
  Stream.mapEffect(linesOf(path), (line) => rolloutOf(path, line))
