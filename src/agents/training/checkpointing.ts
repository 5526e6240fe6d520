/** Saves and restores checkpoints of agents' trainings, in the run's folder. `loop.ts` and `execute.ts` call it. */
import { Clock, Effect, Schema, Struct } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import type { AgentError } from "../agent/AgentError.ts"
import { agentTypeOf } from "../agent/agentType.ts"
import { isPlain, type Plain, toSnakeCase } from "../../base/config/Config.ts"
import { changedSetting } from "../../base/config/difference.ts"
import { oneLine, prettyJson } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { CheckpointError } from "../../run/Checkpoint.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import * as Layout from "../../run/Layout.ts"
import { timestamp } from "../../run/record/timestamp.ts"
import { type RunError, savedFields } from "../../run/Run.ts"
import type { AgentTraining } from "./AgentTraining.ts"
import { RuntimeState } from "./RuntimeState.ts"

/** The Schema of a checkpoint's `runtime.json`. Other programs write only the keys up to `val_score`. */
export const RuntimeJson = Schema.Struct({
  timestamp: Schema.optionalKey(Schema.String),
  episode_index: Schema.Int,
  train_steps_total: Schema.Int,
  agent_type: Schema.String,
  memory_snapshot_path: Schema.optionalKey(Schema.NullOr(Schema.String)),
  val_score: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  ...Struct.map(savedFields(RuntimeState), Schema.optionalKey),
})

/** The Schema of a checkpoint's `agent.json`. */
export const AgentJson = Schema.Struct({
  agent_type: Schema.String,
  agent_config: Schema.Record(Schema.String, Schema.Unknown),
  memory_type: Schema.NullOr(Schema.String),
  memory_snapshot_path: Schema.NullOr(Schema.String),
})

const json = (value: unknown): Uint8Array => utf8.encode(prettyJson(value))

/** Saves a checkpoint with the state and the agent's memory. Call it between two episodes, not during one. */
export const saveCheckpoint = Effect.fn("effect-rl.checkpoint")(function* (
  { agent, described, spent }: AgentTraining,
  state: RuntimeState,
): Effect.fn.Return<void, RunError, CurrentRun> {
  const { memory, type } = agent
  const { seen, scoreHere } = state
  state.lastCheckpoint = seen
  state.lastCheckpointScore = scoreHere
  state.spent = spent?.save() ?? null
  const snapshot = memory === null ? null : Layout.inCheckpoint.memory(seen)
  const runtime: typeof RuntimeJson.Encoded = {
    timestamp: timestamp(yield* Clock.currentTimeMillis),
    episode_index: seen,
    train_steps_total: state.steps,
    agent_type: type,
    memory_snapshot_path: snapshot,
    val_score: scoreHere,
  }
  const config = toSnakeCase(described.agent)
  const about: typeof AgentJson.Encoded = {
    agent_type: type,
    agent_config: isPlain(config) ? config : {},
    memory_type: memory?.type ?? null,
    memory_snapshot_path: snapshot,
  }
  const name = Layout.checkpointName("ep", seen)
  const run = yield* CurrentRun
  yield* run.save({
    name,
    path: name,
    step: seen,
    score: scoreHere,
    runtime,
    files: {
      [Layout.inCheckpoint.agent]: json(about),
      ...(memory === null || snapshot === null ? {} : { [snapshot]: utf8.encode(yield* memory.snapshot) }),
    },
  })
})

/** The checked files of a checkpoint, by name. */
export interface CheckpointFiles {
  /** The path of the checkpoint's folder, for messages. */
  readonly path: string
  readonly files: Readonly<Record<string, Uint8Array>>
  readonly warnings: ReadonlyArray<string>
}

/** Restores the agent's memory from its file in a checkpoint. Does nothing for an agent without a memory. */
export const restoreMemory = Effect.fnUntraced(function* (
  { agent: { memory } }: AgentTraining,
  { path, files }: CheckpointFiles,
  file: string,
) {
  if (memory === null) return
  if (files[file] === undefined) {
    return yield* refused(
      path,
      file,
      "the file is missing, and the agent's memory with it; resume from another checkpoint",
    )
  }
  yield* memory.restore(utf8.decode(files[file]), `${path}/${file}`)
})

/**
 * Restores the memory from a checkpoint of another run, and returns the state in the checkpoint. A checkpoint of another
 * program has only the numbers of episodes and steps. Fails if the agent's type or one of `settings` was different.
 */
export const restoreOther = Effect.fnUntraced(function* (
  training: AgentTraining,
  settings: Plain,
  checkpoint: CheckpointFiles,
): Effect.fn.Return<RuntimeState, CheckpointError | AgentError> {
  const refuse = (problem: string) => refused(checkpoint.path, Layout.inCheckpoint.runtime, problem)
  const saved = yield* readRuntimeJson(checkpoint)
  const { agent_type, episode_index, train_steps_total, progress } = saved
  const { type } = training.agent
  if (agentTypeOf(agent_type) !== type)
    return yield* refuse(`expected a checkpoint of the agent ${type}, found one of ${agent_type}`)
  const problem = saved.settings === undefined ? undefined : changedSetting(settings, saved.settings)
  if (problem !== undefined) return yield* refuse(problem)
  yield* restoreMemory(training, checkpoint, memoryFileOf(saved))
  return progress ?? new RuntimeState({ seen: episode_index, begunAt: episode_index, steps: train_steps_total })
})

const readRuntimeJson = Effect.fnUntraced(function* ({ path, files }: CheckpointFiles) {
  const refuse = (problem: string) => refused(path, Layout.inCheckpoint.runtime, problem)
  const content = files[Layout.inCheckpoint.runtime]
  if (content === undefined) return yield* refuse("the file is missing; resume from another checkpoint")
  return yield* Effect.mapError(decodeRuntimeJson(utf8.decode(content)), (error) => refuse(oneLine(error.message)))
})

/** Returns the name of the memory's file. Other programs write its whole path. */
const memoryFileOf = ({ memory_snapshot_path, episode_index }: typeof RuntimeJson.Type): string =>
  memory_snapshot_path?.split(/[\\/]/).at(-1) ?? Layout.inCheckpoint.memory(episode_index)

/** Returns the name of the memory's file in a checkpoint of any agent; null if that agent had no memory. */
export const memoryFileIn = Effect.fnUntraced(function* (checkpoint: CheckpointFiles) {
  const saved = yield* readRuntimeJson(checkpoint)
  return saved.memory_snapshot_path === null ? null : memoryFileOf(saved)
})

const decodeRuntimeJson = Schema.decodeUnknownEffect(jsonText(RuntimeJson))

const refused = (path: string, file: string, problem: string): CheckpointError =>
  new CheckpointError({ path: `${path}/${file}`, message: `${path}/${file}: ${problem}` })
