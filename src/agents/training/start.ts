/**
 * Lets a training of an agent begin with the memory of another run, which the setting `start` names. `execute.ts` calls it
 * for a new run; a resumed run continues from its own checkpoint, and does not read the other run again.
 */
import { Effect, Path } from "effect"
import { ConfigError } from "../../base/config/Config.ts"
import { exists } from "../../base/files/files.ts"
import { parseYaml } from "../../base/config/yaml.ts"
import { FindRun } from "../../run/FindRun.ts"
import * as Layout from "../../run/Layout.ts"
import { onDisk } from "../../run/store/FileTree.ts"
import type { AgentTraining } from "./AgentTraining.ts"
import { type CheckpointFiles, memoryFileIn, restoreMemory } from "./checkpointing.ts"
import { checkpointAt } from "./resumeFrom.ts"

/** The checkpoint whose memory a training begins with. */
interface MemoryCheckpoint extends CheckpointFiles {
  /** The name of the memory's file in the checkpoint. */
  readonly file: string
}

/** Finds and reads the checkpoint that `start.memory` names, by the path of a run or of the checkpoint itself. */
export const readSource = Effect.fnUntraced(function* ({ settings: { start, runtime }, agent, from }: AgentTraining) {
  if (start === null || start.memory === null) return undefined
  const { memory } = start
  const refuse = (problem: string) => ConfigError.at(from, "start.memory", problem)
  if (runtime.resumeFrom !== null) {
    return yield* refuse("a run that continues another one (resume_from) has its memory; use one of the two settings")
  }
  if (agent.memory === null) return yield* refuse(`the agent ${agent.type} has no memory`)
  const findRun = yield* FindRun
  const asConfigError = Effect.mapError(({ message }: { readonly message: string }) => refuse(message))
  const path = yield* asConfigError(findRun(memory, "agents"))
  const checkpoint = yield* asConfigError(Effect.flatMap(checkpointsOf(path), (folder) => checkpointAt(folder)))
  const file = yield* asConfigError(memoryFileIn(checkpoint))
  if (file === null) return yield* refuse(`${checkpoint.path}: the agent of this checkpoint has no memory`)
  return { ...checkpoint, file }
})

/** Returns the folder of a run's checkpoints; the path itself if it is not the folder of a run. */
const checkpointsOf = Effect.fnUntraced(function* (path: string) {
  const paths = yield* Path.Path
  if (!(yield* exists(paths.join(path, Layout.config)))) return path
  const parsed = parseYaml(yield* (yield* onDisk(path)).readText(Layout.config))
  const places = Layout.placesIn("value" in parsed ? parsed.value : undefined)
  return paths.resolve(path, Layout.locate(places, Layout.checkpoints))
})

/** Copies the memory of a checkpoint into the agent, and returns a note about it. */
export const begin = Effect.fnUntraced(function* (training: AgentTraining, source: MemoryCheckpoint) {
  yield* restoreMemory(training, source, source.file)
  const { memory } = training.agent
  const count = memory === null ? 0 : yield* memory.length
  return `the memory begins with ${count} ${count === 1 ? "entry" : "entries"} of ${source.path}`
})
