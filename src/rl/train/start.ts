/**
 * Lets a training begin with the weights of another run, as the setting `start` asks. `Train.ts` calls it for a new run; a
 * resumed run continues from its own checkpoint, and does not read the other run again.
 */
import { Effect } from "effect"
import type { BackendError } from "../../tensor/backend/Backend.ts"
import { ConfigError } from "../../base/config/Config.ts"
import { messageOf } from "../../base/text/text.ts"
import type { RunningMoments } from "../env/RunningMoments.ts"
import * as safetensors from "../../base/formats/safetensors.ts"
import type { LearningError } from "../learner/Learner.ts"
import type { NamedTensors } from "../../tensor/graph/Parameters.ts"
import * as Checkpoint from "../../run/Checkpoint.ts"
import { FindRun } from "../../run/FindRun.ts"
import * as Layout from "../../run/Layout.ts"
import { savedAt } from "../../run/savedAt.ts"
import { RunStore } from "../../run/store/RunStore.ts"
import { floats } from "./checkpointing.ts"
import type { Plan } from "./plan.ts"
import type { StartSettings } from "./Settings.ts"
import type { Training } from "./setUp.ts"

/** The weights and statistics of the checkpoint that a training begins with. */
export interface Source {
  /** The setting `start`, with the path of the checkpoint instead of the run's. */
  readonly start: StartSettings
  readonly weights: NamedTensors
  /** The arrays of the envs' snapshot. */
  readonly envs: safetensors.TensorEntries
}

const files: ReadonlyArray<string> = [Layout.inCheckpoint.weights, Layout.inCheckpoint.envs]

/** Reads the checkpoint that `start` names. Fails with a `ConfigError` if there is none. */
export const readSource = Effect.fnUntraced(function* (
  start: StartSettings,
  from: Plan["from"],
): Effect.fn.Return<Source, ConfigError, RunStore> {
  const { folderAt } = yield* RunStore
  const findRun = yield* FindRun
  const asConfigError = Effect.mapError(({ message }: { readonly message: string }) =>
    ConfigError.at(from, "start.from", message),
  )
  const path = yield* asConfigError(findRun(start.from, "training"))
  const { tree, wanted, pathOf } = yield* asConfigError(savedAt(path, folderAt))
  const { name, files: loaded } = yield* asConfigError(
    Checkpoint.loadFiles(tree, wanted, (file) => files.includes(file)),
  )
  const place = pathOf(name)
  const [weights, envs] = yield* asConfigError(
    Effect.forEach(files, (file) =>
      Effect.try({
        try: () => (loaded[file] === undefined ? {} : safetensors.decode(loaded[file])),
        catch: (error) => ({ message: `${place}/${file}: ${messageOf(error)}` }),
      }),
    ),
  )
  return { start: { ...start, from: place }, weights: floats(weights), envs }
})

/** Copies the weights and statistics of a source into a new training, before its envs are reset. Returns warnings. */
export const begin = Effect.fnUntraced(function* (
  { plan, learner, envs }: Training,
  { start, weights, envs: saved }: Source,
): Effect.fn.Return<ReadonlyArray<string>, ConfigError | LearningError | BackendError> {
  const refuse = (problem: string, key = "start.from") => ConfigError.at(plan.from, key, problem)
  const { name: algorithm } = plan.algorithm
  if (learner.start === undefined) {
    return yield* refuse(`algorithm "${algorithm}" can't begin with other weights: it lacks the hook "start"`)
  }
  const current = yield* learner.weights
  const chosen = yield* chosenOf(Object.keys(current), start, plan)
  for (const name of chosen) {
    const [theirs, ours] = [weights[name], current[name]]
    if (theirs === undefined) {
      const hint = `start.weights takes only some parts: those of the run are ${partsOf(Object.keys(weights)).join(", ")}`
      return yield* refuse(`${start.from} has no parameter "${name}"; ${hint}`)
    }
    if (theirs.shape.join() === ours.shape.join()) continue
    const shapes = `has the shape [${theirs.shape.join(", ")}] in ${start.from}, and [${ours.shape.join(", ")}] in this training`
    return yield* refuse(
      `parameter "${name}" ${shapes}; leave its part out of start.weights, or make the networks equal`,
    )
  }
  yield* learner.start({ ...current, ...Object.fromEntries(chosen.map((name) => [name, weights[name]])) })

  const { observationMoments, returnMoments } = envs
  const wereNormalised = momentsIn(saved, "observationMoments") !== undefined
  if (wereNormalised && observationMoments === undefined) {
    const problem = `${start.from} was trained with normalised observations; expected true, found false`
    return yield* refuse(problem, "normalize.observations")
  }
  restoreMoments(saved, "observationMoments", observationMoments)
  restoreMoments(saved, "returnMoments", returnMoments)
  return observationMoments === undefined || wereNormalised
    ? []
    : [`${start.from} was trained without normalised observations, so its weights fit only raw ones`]
})

/** Returns the names of the parameters that `start.weights` selects. */
const chosenOf = (
  names: ReadonlyArray<string>,
  { weights }: StartSettings,
  { from }: Plan,
): Effect.Effect<ReadonlyArray<string>, ConfigError> => {
  if (weights === "all") return Effect.succeed(names)
  const isPartOf = (part: string) => (name: string) => name === part || name.startsWith(`${part}.`)
  const unknown = weights.find((part) => !names.some(isPartOf(part)))
  if (unknown !== undefined) {
    const problem = `expected "all" or some of ${partsOf(names).join(", ")}, found "${unknown}"`
    return Effect.fail(ConfigError.at(from, "start.weights", problem))
  }
  return Effect.succeed(names.filter((name) => weights.some((part) => isPartOf(part)(name))))
}

/** Returns the parts of a network, by the first words of its parameters' names. */
const partsOf = (names: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(names.map((name) => name.split(".")[0])),
]

/**
 * Returns the arrays of running moments in a checkpoint. Each wrapper of a batch puts a prefix before the names of the
 * inner batch's arrays.
 */
const momentsIn = (saved: safetensors.TensorEntries, name: string) => {
  const arrayOf = (column: string) =>
    Object.entries(saved).find(([key]) => key === `${name}.${column}` || key.endsWith(`.${name}.${column}`))?.[1].data
  const [mean, variance, count] = ["mean", "variance", "count"].map(arrayOf)
  return mean === undefined || variance === undefined || count === undefined ? undefined : { mean, variance, count }
}

/** Copies the running moments of this name in a checkpoint, if it has them. */
export const restoreMoments = (
  saved: safetensors.TensorEntries,
  name: string,
  into: RunningMoments | undefined,
): void => {
  const moments = momentsIn(saved, name)
  if (into === undefined || moments === undefined || moments.mean.length !== into.mean.length) return
  into.mean.set(moments.mean)
  into.variance.set(moments.variance)
  into.count.set(moments.count)
}
