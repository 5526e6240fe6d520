import { Effect, Option, Schema } from "effect"
import { messageOf, oneLine } from "../config/text.ts"
import type { Learner, LearnerError, NamedTensors } from "../learner/Algorithm.ts"
import * as Checkpoints from "../run/Checkpoint.ts"
import * as safetensors from "../formats/safetensors.ts"
import { ConfigError, display, isPlain, type Plain } from "../config/Config.ts"
import { firstDifference } from "../config/difference.ts"
import { parseYaml } from "../config/yaml.ts"
import * as Normalise from "../env/Normalise.ts"
import type { Snapshot } from "../env/BatchEnv.ts"
import type { Appended, RunFiles } from "../run/store/RunFiles.ts"
import type { RunStoreError } from "../run/store/RunStoreError.ts"
import type { Target } from "./cutBack.ts"
import type { TrainingEnvs } from "./envs.ts"
import { digestOfArrays } from "./digest.ts"
import { RunState, SavedProgress } from "./RunState.ts"
import type { Plan } from "./plan.ts"
import * as Layout from "../run/Layout.ts"
import { utf8 } from "../config/utf8.ts"
import { attempt } from "../config/attempt.ts"
import { EnvError } from "../env/EnvError.ts"

/**
 * A training as files, and back. A checkpoint holds the weights, the optimiser's state, every env in the middle of its
 * episode, and `runtime.json`: the progress, the sizes and digests of the score files at that moment, and the settings
 * that a resumed run must share with the one that was saved.
 */
const Runtime = Schema.Struct({
  progress: SavedProgress,
  appendedSizes: Schema.Record(Schema.String, Schema.Int),
  appendedDigests: Schema.Record(Schema.String, Schema.String),
  settings: Schema.Record(Schema.String, Schema.Unknown),
  /** What computed: another device gives other last bits. */
  devices: Schema.Record(Schema.String, Schema.String),
})

/**
 * What must be the same for a resumed run to be the same run. When it validates and saves may change, and how long it
 * goes: but an annealed learning rate follows the total, so a longer run is then not the one it would have been.
 */
const sharedSettings = ({ plan, learner }: Pick<Saving, "plan" | "learner">): Effect.Effect<Plain> => {
  const { settings, effective, env } = plan
  const shared = {
    env: settings.env,
    maxSteps: env.maxSteps ?? null,
    observations: env.observationSpace.shape,
    actions: env.actionSpace,
    numEnvs: settings.numEnvs,
    seed: settings.seed,
    normalize: settings.normalize,
    algorithm: effective.algorithm,
  }
  const { data } = learner
  return data === undefined
    ? Effect.succeed(shared)
    : Effect.map(digestOfArrays(data), (digest) => ({ ...shared, data: digest }))
}

export interface Saving {
  readonly plan: Plan
  readonly run: RunFiles
  readonly learner: Learner
  readonly envs: TrainingEnvs
  readonly state: RunState
  readonly wallSeconds: Effect.Effect<number>
}

/** Writes a checkpoint of this moment and gives its path. */
export const saveCheckpoint = Effect.fnUntraced(function* (
  saving: Saving,
): Effect.fn.Return<string, Checkpoints.CheckpointError | RunStoreError | LearnerError> {
  const { plan, run, learner, envs, state } = saving
  const { sizes, digests } = yield* run.appended
  const runtime: typeof Runtime.Encoded = {
    progress: state.save(yield* saving.wallSeconds),
    appendedSizes: sizes,
    appendedDigests: digests,
    settings: yield* sharedSettings(saving),
    devices: learner.devices,
  }
  const name = Layout.checkpointName("step", state.step)
  yield* Checkpoints.save(run, {
    name,
    step: state.step,
    score: state.scoreHere,
    strategy: plan.settings.checkpoint.strategy,
    files: {
      [Layout.inCheckpoint.weights]: safetensors.encode(yield* learner.weights),
      ...Object.fromEntries(
        Object.entries(yield* learner.state).map(([stem, arrays]) => [
          Layout.inCheckpoint.arrays(stem),
          contentsOf(arrays),
        ]),
      ),
      [Layout.inCheckpoint.envs]: safetensors.encode(flat(envs.snapshot())),
      ...(yield* exported(learner, envs)),
      [Layout.inCheckpoint.runtime]: utf8.encode(JSON.stringify(runtime, null, 2)),
    },
  })
  return `${plan.settings.checkpoint.dir}/${name}`
})

/** Above this, a file is written straight from the arrays: a replay memory has no room for a copy of itself. */
const largeBytes = 32 * 1024 * 1024

const contentsOf = (arrays: safetensors.Tensors): Checkpoints.NewCheckpoint["files"][string] => {
  const bytes = Object.values(arrays).reduce((sum, tensor) => sum + safetensors.byteLength(tensor), 0)
  return bytes > largeBytes ? safetensors.encodeParts(arrays) : safetensors.encode(arrays)
}

/** The policy for whoever wants to use it elsewhere, with what it sees the env's observations through. */
const exported = (
  { exportPolicy }: Learner,
  { observationMoments }: TrainingEnvs,
): Effect.Effect<Readonly<Record<string, Uint8Array>>, LearnerError> =>
  exportPolicy === undefined
    ? Effect.succeed({})
    : exportPolicy(observationMoments === undefined ? undefined : Normalise.asGraph(observationMoments)).pipe(
        Effect.map((model) => ({ [Layout.inCheckpoint.policy]: model })),
        Effect.catchTag("GraphError", (error) => Effect.die(error)),
      )

/** A 1-D tensor an array: how many rows it has is the env's business. */
const flat = (snapshot: Snapshot): safetensors.Tensors =>
  Object.fromEntries(Object.entries(snapshot).map(([key, data]) => [key, { shape: [data.length], data }]))

/** What a checkpoint held, and what the files of the run are to be cut back to. */
export interface Restored extends Target {
  readonly state: RunState
  /** What had to be passed over to find an intact checkpoint. */
  readonly warnings: ReadonlyArray<string>
}

/** A run that was stopped before it had saved anything: what little it left is cut away, and it starts over. */
export const startOver = (run: RunFiles): Effect.Effect<boolean, RunStoreError> =>
  Effect.gen(function* () {
    yield* run.repair(Layout.checkpoints)
    if ((yield* run.list(Layout.checkpoints)).length > 0) return false
    yield* run.cutBack({ sizes: {} })
    return true
  })

/** Puts learner and envs where the run's newest intact checkpoint left them; the run's files stay as they are. */
export const restoreLatest = Effect.fnUntraced(function* (
  restoring: Restoring,
): Effect.fn.Return<Restored, Checkpoints.CheckpointError | RunStoreError | LearnerError | ConfigError> {
  const restored = yield* restore(restoring, "latest")
  const { totalSteps } = restoring.plan.settings
  const before = yield* savedConfig(restoring.run)
  const tooFew =
    restored.state.step > totalSteps && typeof before.total_steps === "number" && totalSteps < before.total_steps
  if (tooFew) {
    const { directory } = restoring.run
    const problem = `${directory} has done ${restored.state.step} steps already; expected at least as many, found ${totalSteps}`
    return yield* ConfigError.at(restoring.plan.from, "total_steps", problem)
  }
  return restored
})

const decodeRuntime = Schema.decodeUnknownEffect(Schema.fromJsonString(Runtime))

const appendedOf = ({ appendedSizes, appendedDigests }: typeof Runtime.Type): Appended => ({
  sizes: appendedSizes,
  digests: appendedDigests,
})

const appendedIn = (runtimeJson: string): Appended | undefined =>
  Option.getOrUndefined(Option.map(Schema.decodeUnknownOption(Schema.fromJsonString(Runtime))(runtimeJson), appendedOf))

/** What a run's `config.yaml` says, as it was last left there. */
export const savedConfig = Effect.fnUntraced(function* (run: RunFiles): Effect.fn.Return<Plain, RunStoreError> {
  if (!(yield* run.exists(Layout.config))) return {}
  const text = yield* run.readText(Layout.config)
  const found = parseYaml(text)
  return "value" in found && isPlain(found.value) ? found.value : {}
})

export type Restoring = Pick<Saving, "plan" | "run" | "learner" | "envs">

/** Puts learner and envs where a checkpoint left them, and leaves the run's files as they are. */
export const restore = Effect.fnUntraced(function* (
  { plan, run, learner, envs }: Restoring,
  wanted: string,
): Effect.fn.Return<Restored, Checkpoints.CheckpointError | RunStoreError | LearnerError | ConfigError> {
  const { name, files, skipped } = yield* Checkpoints.load(run, wanted)
  const path = Layout.checkpoint(name)
  const tensors = (file: string): Effect.Effect<safetensors.Tensors, Checkpoints.CheckpointError> =>
    Effect.try({
      try: () => safetensors.decode(files[file]),
      catch: (error) => damaged(run, `${path}/${file}`, messageOf(error)),
    })

  const runtime = yield* decodeRuntime(utf8.decode(files[Layout.inCheckpoint.runtime])).pipe(
    Effect.mapError((error) => damaged(run, `${path}/${Layout.inCheckpoint.runtime}`, oneLine(error.message))),
  )
  const difference = firstDifference(yield* sharedSettings({ plan, learner }), runtime.settings)
  if (difference !== undefined) {
    const { key, now, then } = difference
    const message = `${run.directory}: the run was saved with ${key} = ${display(then)}, and would now go on with ${display(now)}`
    return yield* new Checkpoints.CheckpointError({ path: run.directory, message })
  }
  const stems = Object.keys(files).flatMap((file) => Layout.arraysOf(file) ?? [])
  const arrays: Record<string, safetensors.Tensors> = {}
  for (const stem of stems) arrays[stem] = yield* tensors(Layout.inCheckpoint.arrays(stem))
  const { weights = {}, envs: savedEnvs = {}, ...state } = arrays
  yield* Effect.catchTag(learner.restore(floats(weights), state), "LearningError", (error) =>
    Effect.fail(damaged(run, path, error.message)),
  )
  const snapshot = Object.fromEntries(Object.entries(savedEnvs).map(([key, { data }]) => [key, data]))
  yield* attempt(() => envs.restore(snapshot), EnvError)
  return {
    state: RunState.restore(runtime.progress),
    name,
    folder: `${run.directory}/${plan.settings.checkpoint.dir}`,
    appended: appendedOf(runtime),
    appendedIn,
    warnings: [
      ...skipped.map((one) => `checkpoint ${one.name} is damaged (${one.reason}); going on from ${name}`),
      ...Object.entries(learner.devices).flatMap(([program, device]) => {
        const before = runtime.devices[program]
        return before === device
          ? []
          : [`${program} ran on ${before} before and runs on ${device} now: the last bits will differ`]
      }),
    ],
  }
})

const damaged = (run: RunFiles, path: string, message: string): Checkpoints.CheckpointError =>
  new Checkpoints.CheckpointError({ path, message: `${run.directory}/${path}: ${message}` })

const floats = (tensors: safetensors.Tensors): NamedTensors =>
  Object.fromEntries(
    Object.entries(tensors).flatMap(([key, { shape, data }]) =>
      data instanceof Float32Array ? [[key, { shape, data }]] : [],
    ),
  )
