/**
 * Spreads a validation over other machines, if a `Dispatcher` is provided that does so. A job plays some adjacent
 * episodes of one batch; it contains the weights of the policy and the statistics that normalise observations. An
 * episode depends only on these, the seed and its number, so the returns are the same on every machine.
 *
 * Each job computes the policy for as many rows as the whole batch has, because the bits of a matrix product may depend
 * on its size. So spreading pays off if the steps of the env cost more than the policy.
 */
import { Clock, Effect, Semaphore } from "effect"
import * as Schema from "effect/Schema"
import { WorkerError } from "../../../spread/workers/WorkerError.ts"
import { BackendError } from "../../../tensor/backend/Backend.ts"
import { Dispatcher, type Handler, handler, job } from "../../../spread/cluster/Dispatcher.ts"
import type { Plain } from "../../../base/config/Config.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { EnvError } from "../../../base/EnvError.ts"
import { chunksOf } from "../../../spread/cluster/sent/chunks.ts"
import * as safetensors from "../../../base/formats/safetensors.ts"
import { type LearnerError, LearningError } from "../../learner/Learner.ts"
import { CurrentRun } from "../../../run/CurrentRun.ts"
import { outcomeOf, type ValidationOutcome } from "../../../run/evaluation.ts"
import { PlayedEpisode } from "../../../run/record/RunEvent.ts"
import { Attachment, attach } from "../../../run/spread/Attachment.ts"
import { runIdOf, trainingFields } from "../../../run/spread/SentTraining.ts"
import type { RunStoreError } from "../../../run/store/RunStoreError.ts"
import { floats } from "../checkpointing.ts"
import { validationBatch } from "../envs.ts"
import { sharedSettings } from "../resume.ts"
import type { Training } from "../setUp.ts"
import { partsOf, togetherIn } from "./PolicyValidator.ts"

/** The number of jobs in the first validation, when nobody knows yet how long one takes. */
const firstJobs = 16
/** The largest number of jobs in a validation. */
const mostJobs = 32
/** The number of seconds that a job should take: sending one costs about a tenth of a second. */
const jobSeconds = 3

/** Plays some adjacent episodes of a batch. */
const validationJob = job({
  name: "validation",
  payload: Schema.Struct({
    ...trainingFields,
    seed: Schema.Int,
    /** The number of env steps of the training before the validation. */
    step: Schema.Int,
    /** The weights, and the statistics of observations, as safetensors. */
    policy: Attachment,
    policyDigest: Schema.String,
    /** The index of the batch. `from` and `to` are positions among its episodes. */
    batch: Schema.Int,
    from: Schema.Int,
    to: Schema.Int,
  }),
  result: Schema.Struct({
    // Returns may be infinite, which plain JSON cannot hold.
    episodes: Schema.toCodecJson(Schema.Array(PlayedEpisode)),
    /**
     * The duration of the work. If it was short, the next validation has fewer jobs; the returns do not depend on that.
     */
    seconds: Schema.Finite,
  }),
  failure: Schema.Union([LearningError, BackendError, EnvError, WorkerError]),
  key: ({ run, step, policyDigest, batch, from, to }) =>
    `${run} step ${step} policy ${policyDigest} batch ${batch + 1} episodes ${from + 1}-${to}`,
})
type Payload = Parameters<(typeof validationJob)["key"]>[0]

/** The seconds of work of the last validation of each training in this process. */
const lastSeconds = new WeakMap<Training, number>()

/** Returns how many jobs a validation should have, from the seconds of work of the last one. */
export const jobsOf = (episodes: number, seconds: number | undefined): number =>
  Math.min(
    episodes,
    seconds === undefined ? firstJobs : Math.min(mostJobs, Math.max(1, Math.floor(seconds / jobSeconds))),
  )

/** Returns the settings and the devices on which the returns depend: they must be equal on all machines. */
export const identityOf = Effect.fnUntraced(function* (training: Training) {
  const { plan, learner, validator } = training
  const { episodes, maxSteps, sampled, envs } = plan.settings.validation
  const identity: Plain = {
    ...(yield* sharedSettings(training)),
    validation: { episodes, maxSteps, sampled, envs },
    devices: { ...learner.devices, policies: validator?.batches.map(({ device }) => device) ?? [] },
  }
  return identity
})

/**
 * Validates the current policy: on other machines if a `Dispatcher` spreads jobs and the last validation was long
 * enough, otherwise in this process. Returns undefined if the training has no validation.
 */
export const validateAnywhere = Effect.fnUntraced(function* (
  training: Training,
  step: number,
): Effect.fn.Return<ValidationOutcome | undefined, LearnerError | WorkerError | RunStoreError, CurrentRun> {
  const { plan, validator, sent } = training
  const { seed } = plan.settings
  if (validator === undefined) return undefined
  const { inFlight } = yield* Dispatcher
  const here = validator.validate(seed, step)
  if (inFlight === undefined || sent === undefined) return yield* here
  const count = validator.batches.reduce((sum, { size }) => sum + size, 0)
  const jobs = jobsOf(count, lastSeconds.get(training))
  const { seconds, outcome } = yield* jobs <= 1 ? timed(here) : spread(training, step, Math.ceil(count / jobs))
  lastSeconds.set(training, seconds)
  return outcome
})

const timed = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  const begun = yield* Clock.currentTimeMillis
  const outcome = yield* work
  return { outcome, seconds: ((yield* Clock.currentTimeMillis) - begun) / 1000 }
})

/** Plays the validation on other machines, at most `size` episodes in each job. */
const spread = Effect.fnUntraced(function* (training: Training, step: number, size: number) {
  const { plan, validator, sent } = training
  if (validator === undefined || sent === undefined) return yield* Effect.die(new Error("nothing to validate"))
  const dispatcher = yield* Dispatcher
  const { files } = yield* CurrentRun
  const identity = yield* identityOf(training)
  const bytes = yield* encodePolicy(training)
  const run = yield* runIdOf(files.directory, { training: sent, identity })
  const fields = {
    run,
    training: sent,
    identity,
    seed: plan.settings.seed,
    step,
    policy: yield* attach(files, run, bytes),
    policyDigest: (yield* sha256(bytes)).slice(0, 12),
  }
  const lock = Semaphore.makeUnsafe(1)
  const owners = partsOf(plan.settings.validation, plan.validationEnvs)
  const parts = validator.batches.flatMap(({ size: whole }, batch) => {
    const together = togetherIn(plan.validationEnvs[owners[batch].env], whole)
    return chunksOf(whole, Math.ceil(size / together) * together).map((chunk) => ({ batch, ...chunk }))
  })
  const answers = yield* Effect.forEach(
    parts,
    (part) => {
      const payload: Payload = { ...fields, ...part }
      return dispatcher.run(validationJob, payload, lock.withPermit(playPart(training, payload)))
    },
    { concurrency: dispatcher.inFlight ?? 1 },
  )
  return {
    outcome: outcomeOf(answers.flatMap(({ episodes }) => episodes)),
    seconds: answers.reduce((sum, answer) => sum + answer.seconds, 0),
  }
}, Effect.scoped)

/** Loads the weights of a job, and plays its episodes. */
const playPart = Effect.fnUntraced(function* (
  { plan, envs, validator }: Training,
  { batch, from, to, seed, step }: Payload,
) {
  if (validator === undefined || batch >= validator.batches.length) {
    const message = `on a worker of the cluster: there is no validation batch ${batch + 1}`
    return yield* WorkerError.dispatch(validationJob.name, message)
  }
  const first = validator.batches[batch].first + from
  const { validation } = plan.settings
  const { env } = partsOf(validation, plan.validationEnvs)[batch]
  const { outcome: episodes, seconds } = yield* timed(
    Effect.flatMap(
      validationBatch(plan.validationEnvs[env], { first, count: to - from, workers: validation.workers }, envs),
      (part) => validator.playPart(batch, { ...part, at: from }, seed, step),
    ),
  )
  return { episodes, seconds }
}, Effect.scoped)

const [weightPrefix, momentPrefix] = ["weights/", "moments/"]

/** Encodes the weights and the statistics of observations. */
const encodePolicy = Effect.fnUntraced(function* ({ learner, envs }: Training) {
  const named = Object.entries(yield* learner.weights).map(([key, array]) => [`${weightPrefix}${key}`, array] as const)
  const { mean, variance, count } = envs.observationMoments ?? {}
  const moments = Object.entries({ mean, variance, count }).flatMap(([key, data]) =>
    data === undefined ? [] : [[`${momentPrefix}${key}`, { shape: [data.length], data }] as const],
  )
  return safetensors.encode(Object.fromEntries([...named, ...moments]))
})

/** Sets the weights and the statistics of observations of a training that only validates. */
const restorePolicy = Effect.fnUntraced(function* ({ learner, envs }: Training, bytes: Uint8Array) {
  const arrays = Object.entries(safetensors.decode(bytes))
  const below = (prefix: string) =>
    Object.fromEntries(
      arrays.flatMap(([key, array]) => (key.startsWith(prefix) ? [[key.slice(prefix.length), array] as const] : [])),
    )
  // The state of the learner, such as its optimiser, stays as it is: a policy does not depend on it.
  yield* learner.restore(floats(below(weightPrefix)), yield* learner.state)
  const moments = below(momentPrefix)
  for (const key of ["mean", "variance", "count"] as const) envs.observationMoments?.[key].set(moments[key]?.data ?? [])
})

/**
 * Makes the handlers by which a worker that has loaded this training plays jobs. It plays one job at a time, because
 * jobs share the policy.
 */
export const handlersOf = (
  training: Training,
  read: (job: string, attachment: Attachment) => Effect.Effect<Uint8Array, WorkerError>,
): ReadonlyArray<Handler> => {
  const lock = Semaphore.makeUnsafe(1)
  let current: string | undefined
  const play = Effect.fnUntraced(function* (payload: Payload) {
    if (payload.policyDigest !== current) {
      const bytes = yield* read(validationJob.name, payload.policy)
      current = undefined
      yield* restorePolicy(training, bytes)
      current = payload.policyDigest
    }
    return yield* playPart(training, payload)
  })
  return [handler(validationJob, (payload) => lock.withPermit(play(payload)))]
}
