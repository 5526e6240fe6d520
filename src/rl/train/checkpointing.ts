/** Saves a training (weights, learner, envs, counters) as a checkpoint in the run's folder. `resume.ts` restores it. */
import { Effect, Record } from "effect"
import { ConfigError, isPlain } from "../../base/config/Config.ts"
import { tidyFolder } from "../../base/files/files.ts"
import { parseYaml } from "../../base/config/yaml.ts"
import type { Snapshot } from "../env/BatchEnv.ts"
import * as safetensors from "../../base/formats/safetensors.ts"
import type { LearnerError } from "../learner/Learner.ts"
import type { NamedTensors } from "../../tensor/graph/Parameters.ts"
import type { NewCheckpoint } from "../../run/Checkpoint.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import * as Layout from "../../run/Layout.ts"
import type { RunError } from "../../run/Run.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import { exportedPolicies } from "./envs.ts"
import type { Plan } from "./plan.ts"
import type { Training } from "./setUp.ts"
import type { TrainingState } from "./TrainingState.ts"

/**
 * Saves weights, the learner's state, the envs, even in mid-episode, and exported policies. `Run.ts` adds the counters
 * (`TrainingState`) in `runtime.json`. Must be called between two iterations.
 */
export const saveCheckpoint = Effect.fn("effect-rl.checkpoint")(function* (
  training: Training,
  state: TrainingState,
): Effect.fn.Return<void, RunError | LearnerError, CurrentRun> {
  const { plan, learner, envs } = training
  state.lastCheckpointStep = state.step
  state.lastCheckpointEpisode = state.episodes
  const name = Layout.checkpointName("step", state.step)
  const run = yield* CurrentRun
  // Wait for the previous checkpoint: otherwise, the files of both would be in memory.
  yield* run.saved
  yield* run.save({
    name,
    path: `${plan.settings.checkpoint.dir}/${name}`,
    step: state.step,
    score: state.scoreHere,
    files: {
      [Layout.inCheckpoint.weights]: safetensors.encode(yield* learner.weights),
      ...Object.fromEntries(
        Object.entries(yield* learner.state).map(([stem, arrays]) => [
          Layout.inCheckpoint.arrays(stem),
          contentsOf(arrays),
        ]),
      ),
      [Layout.inCheckpoint.envs]: safetensors.encode(flat(envs.snapshot())),
      ...(yield* exportedPolicies(training, state.step, Layout.inCheckpoint.policyOf)),
    },
  })
})

/** The size in bytes above which a file is written in parts: a copy of a large replay buffer may not fit in memory. */
const largeBytes = 32 * 1024 * 1024

const contentsOf = (arrays: safetensors.TensorEntries): NewCheckpoint["files"][string] => {
  const bytes = Object.values(arrays).reduce((sum, tensor) => sum + safetensors.byteLength(tensor), 0)
  return bytes > largeBytes ? safetensors.encodeParts(arrays) : safetensors.encode(arrays)
}

/**
 * Converts the arrays of a snapshot of the envs to one-dimensional tensors, because only the env knows their shapes.
 */
const flat = (snapshot: Snapshot): safetensors.TensorEntries =>
  Record.map(snapshot, (data) => ({ shape: [data.length], data }))

/** Reads the `config.yaml` that the run was last started with: `{}` if it is damaged, undefined if it is missing. */
const savedConfig = Effect.fnUntraced(function* (run: RunFiles) {
  if (!(yield* run.exists(Layout.config))) return undefined
  const parsed = parseYaml(yield* run.readText(Layout.config))
  return "value" in parsed && isPlain(parsed.value) ? parsed.value : {}
})

/**
 * Fails if the run's saved config names another folder for checkpoints than this config: no checkpoint would be found,
 * and the run would start again from step 0.
 */
export const checkCheckpointFolder = Effect.fnUntraced(function* (
  { settings, from }: Plan,
  run: RunFiles,
): Effect.fn.Return<void, ConfigError | RunStoreError> {
  const saved = yield* savedConfig(run)
  if (saved === undefined) return
  const { dir = Layout.checkpoints } = isPlain(saved.checkpoint) ? saved.checkpoint : {}
  if (typeof dir === "string" && tidyFolder(dir) === settings.checkpoint.dir) return
  const problem = `the run keeps its checkpoints in ${String(dir)}, not in ${settings.checkpoint.dir}`
  return yield* ConfigError.at(from, "checkpoint.dir", problem)
})

/** Fails if a resumed training has done more steps than its total, which was lowered since the last start. */
export const checkTotalSteps = Effect.fnUntraced(function* (
  { settings: { totalSteps }, from }: Plan,
  run: RunFiles,
  { step }: TrainingState,
): Effect.fn.Return<void, ConfigError | RunStoreError> {
  if (step <= totalSteps) return
  const before = yield* savedConfig(run)
  if (typeof before?.total_steps !== "number" || totalSteps >= before.total_steps) return
  const problem = `${run.directory} has done ${step} steps already; expected at least as many, found ${totalSteps}`
  return yield* ConfigError.at(from, "total_steps", problem)
})

/** Returns warnings about programs that now run on another device than when the checkpoint was saved. */
export const deviceWarnings = (
  now: Readonly<Record<string, string>>,
  before: Readonly<Record<string, string>>,
): ReadonlyArray<string> =>
  Object.entries(now).flatMap(([program, device]) =>
    before[program] === device
      ? []
      : [`${program} ran on ${before[program]} before and runs on ${device} now: the last bits will differ`],
  )

/** Returns the tensors of 32-bit floats, as weights are. */
export const floats = (tensors: safetensors.TensorEntries): NamedTensors =>
  Object.fromEntries(
    Object.entries(tensors).flatMap(([key, { shape, data }]) =>
      data instanceof Float32Array ? [[key, { shape, data }]] : [],
    ),
  )
