import { Clock, Effect, Option, Schema } from "effect"
import type { Agent } from "../agent/Agent.ts"
import type { AgentError } from "../agent/AgentError.ts"
import * as Checkpoints from "../run/Checkpoint.ts"
import { display, type Plain, toSnakeCase } from "../config/Config.ts"
import { oneLine, prettyJson } from "../config/text.ts"
import type { Appended, RunFiles } from "../run/store/RunFiles.ts"
import type { RunStoreError } from "../run/store/RunStoreError.ts"
import { Spending, type Spent } from "../lm/middleware/budgeted.ts"
import { timestamp } from "../run/record/timestamp.ts"
import { firstDifference } from "../config/difference.ts"
import { RuntimeState, SavedProgress } from "./RuntimeState.ts"
import * as Layout from "../run/Layout.ts"
import { utf8 } from "../config/utf8.ts"

/** `runtime.json` of a checkpoint. Other programs' have the keys before `effect_rl` only. */
export const RuntimeJson = Schema.Struct({
  timestamp: Schema.optionalKey(Schema.String),
  episode_index: Schema.Int,
  train_steps_total: Schema.Int,
  agent_type: Schema.String,
  memory_snapshot_path: Schema.optionalKey(Schema.NullOr(Schema.String)),
  val_score: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  effect_rl: Schema.optionalKey(
    Schema.Struct({
      progress: SavedProgress,
      spent: Schema.optionalKey(Spending),
      appended_sizes: Schema.Record(Schema.String, Schema.Int),
      appended_digests: Schema.Record(Schema.String, Schema.String),
      /** What a run must share with the one that was saved, to go on with it. */
      settings: Schema.Record(Schema.String, Schema.Unknown),
    }),
  ),
})
export type RuntimeJson = typeof RuntimeJson.Type

/** `agent.json` of a checkpoint. */
export const AgentJson = Schema.Struct({
  agent_type: Schema.String,
  agent_config: Schema.Record(Schema.String, Schema.Unknown),
  memory_type: Schema.NullOr(Schema.String),
  memory_snapshot_path: Schema.NullOr(Schema.String),
})

export interface Saving {
  readonly run: RunFiles
  readonly agent: Agent
  /** What the agent was made of, as far as it is known. */
  readonly agentConfig: Plain
  readonly state: RuntimeState
  readonly strategy: Checkpoints.RetentionStrategy
  readonly settings: Plain
  readonly wallSeconds: Effect.Effect<number>
  readonly spent: Spent | undefined
}

const json = (value: unknown): Uint8Array => utf8.encode(prettyJson(value))

/** Writes a checkpoint of this moment, which is between two episodes, and gives its name. */
export const save = Effect.fnUntraced(function* (saving: Saving): Effect.fn.Return<string, RunStoreError> {
  const { run, agent, state, strategy } = saving
  const { memory, type } = agent
  const { seen } = state
  const snapshot = memory === null ? null : Layout.inCheckpoint.memory(seen)
  state.lastCheckpoint = seen
  state.lastCheckpointScore = state.scoreHere
  const { sizes, digests } = yield* run.appended
  const runtime: typeof RuntimeJson.Encoded = {
    timestamp: timestamp(yield* Clock.currentTimeMillis),
    episode_index: seen,
    train_steps_total: state.steps,
    agent_type: type,
    memory_snapshot_path: snapshot,
    val_score: state.scoreHere,
    effect_rl: {
      progress: state.save(yield* saving.wallSeconds),
      ...(saving.spent === undefined ? {} : { spent: saving.spent.save() }),
      appended_sizes: sizes,
      appended_digests: digests,
      settings: saving.settings,
    },
  }
  const about: typeof AgentJson.Encoded = {
    agent_type: type,
    agent_config: toPlainSnake(saving.agentConfig),
    memory_type: memory?.type ?? null,
    memory_snapshot_path: snapshot,
  }
  const name = Layout.checkpointName("ep", seen)
  yield* Checkpoints.save(run, {
    name,
    step: seen,
    score: state.scoreHere,
    strategy,
    files: {
      [Layout.inCheckpoint.runtime]: json(runtime),
      [Layout.inCheckpoint.agent]: json(about),
      ...(memory === null || snapshot === null ? {} : { [snapshot]: utf8.encode(yield* memory.snapshot) }),
    },
  })
  return name
})

const toPlainSnake = (config: Plain): Plain => {
  const renamed = toSnakeCase(config)
  return typeof renamed === "object" && renamed !== null ? { ...renamed } : {}
}

export interface Restored {
  readonly state: RuntimeState
  /** Undefined of a checkpoint of another program. */
  readonly appended: Appended | undefined
  readonly spent: Spending | undefined
  readonly warnings: ReadonlyArray<string>
}

export type RestoreError = Checkpoints.CheckpointError | RunStoreError | AgentError

/** The files of a checkpoint, found whole. */
export interface CheckpointFiles {
  /** For messages: its folder. */
  readonly path: string
  readonly files: Readonly<Record<string, Uint8Array>>
  readonly warnings: ReadonlyArray<string>
}

/** Puts an agent's memory, and the counters, where a checkpoint left them; whatever doesn't fit is refused. */
export const restore = Effect.fnUntraced(function* (
  agent: Agent,
  settings: Plain,
  { path, files, warnings }: CheckpointFiles,
): Effect.fn.Return<Restored, RestoreError> {
  const refuse = (file: string, message: string) =>
    new Checkpoints.CheckpointError({ path: `${path}/${file}`, message: `${path}/${file}: ${message}` })
  const text = (file: string) => utf8.decode(files[file])

  if (files[Layout.inCheckpoint.runtime] === undefined)
    return yield* refuse(Layout.inCheckpoint.runtime, "it is missing")
  const runtime = yield* Schema.decodeUnknownEffect(Schema.fromJsonString(RuntimeJson))(
    text(Layout.inCheckpoint.runtime),
  ).pipe(Effect.mapError((error) => refuse(Layout.inCheckpoint.runtime, oneLine(error.message))))
  if (runtime.agent_type !== agent.type) {
    const found = `it was saved by a ${runtime.agent_type}, and would go on with a ${agent.type}`
    return yield* refuse(Layout.inCheckpoint.runtime, found)
  }
  const { effect_rl: ours } = runtime
  const difference = ours === undefined ? undefined : firstDifference(settings, ours.settings)
  if (difference !== undefined) {
    const { key, now, then } = difference
    return yield* refuse(
      Layout.inCheckpoint.runtime,
      `it was saved with ${key} = ${display(then)}, and would now go on with ${display(now)}`,
    )
  }
  const { memory } = agent
  if (memory !== null) {
    // Only the name counts: other programs write whole paths.
    const file = runtime.memory_snapshot_path?.split("/").at(-1) ?? Layout.inCheckpoint.memory(runtime.episode_index)
    if (files[file] === undefined) return yield* refuse(file, "it is missing; the agent would go on without its memory")
    yield* memory.restore(text(file), `${path}/${file}`)
  }
  const state = ours === undefined ? foreignState(runtime) : RuntimeState.restore(ours.progress)
  return { state, appended: appendedOf(runtime), spent: ours?.spent, warnings }
})

const appendedOf = ({ effect_rl: ours }: RuntimeJson): Appended | undefined =>
  ours === undefined ? undefined : { sizes: ours.appended_sizes, digests: ours.appended_digests }

/** What `runtime.json` of a checkpoint says of the files that grow. */
export const appendedIn = (runtimeJson: string): Appended | undefined =>
  Option.getOrUndefined(
    Option.map(Schema.decodeUnknownOption(Schema.fromJsonString(RuntimeJson))(runtimeJson), appendedOf),
  )

const foreignState = ({ episode_index, train_steps_total }: RuntimeJson): RuntimeState => {
  const state = new RuntimeState(episode_index)
  state.steps = train_steps_total
  return state
}
