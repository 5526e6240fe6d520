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

/** Tells whether a rollout belongs to the same episode as the ones before it: as another player, or as a sub-agent. */
const isOfEpisode = ({ meta }: Rollout, [first]: ReadonlyArray<Rollout>): boolean =>
  first === undefined ||
  meta.parentRolloutId !== null ||
  (meta.player !== null &&
    meta.player !== first.meta.player &&
    meta.envId === first.meta.envId &&
    meta.envSeed === first.meta.envSeed)

/** Reads the rollouts of a file, those of one episode at a time: of all its players and their sub-agents. */
export const readEpisodes = (path: string): Stream.Stream<ReadonlyArray<Rollout>, FormatError, FileSystem.FileSystem> =>
  Stream.mapAccumArray(
    read(path),
    (): ReadonlyArray<Rollout> => [],
    (episode, rollouts) => {
      const complete: Array<ReadonlyArray<Rollout>> = []
      let current = [...episode]
      for (const rollout of rollouts) {
        if (!isOfEpisode(rollout, current)) {
          complete.push(current)
          current = []
        }
        current.push(rollout)
      }
      return [current, complete]
    },
    { onHalt: (episode) => (episode.length === 0 ? [] : [episode]) },
  )
