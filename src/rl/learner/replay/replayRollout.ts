/** Plays the rollouts of off-policy learners: acts in the envs, at first at random, and stores every step in the replay buffer. */
import type { Program } from "../../../tensor/backend/Backend.ts"
import { type Stream, stream } from "../../../base/rng/Rng.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import type { Actor } from "../../model/Actor.ts"
import type { Position } from "../Learner.ts"
import { type Steps, waitFor } from "../drive.ts"
import { addNoise, randomActions } from "../exploration.ts"
import { numbersOf } from "../learnerState.ts"
import { drawOf, type NoiseSharing } from "../stateDependent.ts"
import { ornsteinUhlenbeck } from "./ornsteinUhlenbeck.ts"
import type { prioritisedDraws } from "./Priorities.ts"
import type { Replay } from "./Replay.ts"
import type { ExperienceOptions } from "./ReplayExperience.ts"

/** The parts of an experience with which a learner acts. */
type ReplayActing = Pick<
  ExperienceOptions<string>,
  "task" | "config" | "actor" | "exploration" | "warmUpNoise" | "actsAtWarmup" | "freshNoise"
>

/** The state of a learner that acts. */
export interface ReplayRollout {
  readonly acting: ReplayActing
  readonly act: Program
  readonly replay: Replay
  readonly prioritised: ReturnType<typeof prioritisedDraws> | undefined
  readonly envActions: Float32Array | Int32Array
  /** The number of steps that each env takes in an iteration. */
  readonly steps: number
  readonly sharing: NoiseSharing
  readonly random: Stream
  /** The noise of a step, and the parts of the array that the actor reads. */
  readonly noise: Float32Array
  readonly noiseParts: ReadonlyArray<Float32Array>
  /** The number of the last draw of noise; `noiseRepeat` consecutive steps use the same draw. */
  drawn: number
  readonly process: ReturnType<typeof ornsteinUhlenbeck> | undefined
}

export const makeReplayRollout = (
  acting: ReplayActing,
  act: Program,
  replay: Replay,
  prioritised: ReplayRollout["prioritised"],
): ReplayRollout => {
  const { task, config, actor, freshNoise = false } = acting
  const { numEnvs, seed } = task
  const { trainEvery, noiseRepeat = 1 } = config
  const { noiseSize, processSize = 0 } = actor
  const noise = new Float32Array(noiseSize * numEnvs)
  return {
    acting,
    act,
    replay,
    prioritised,
    envActions: numbersOf(act.results, "envActions"),
    steps: Math.ceil(trainEvery / numEnvs),
    sharing: { noiseRepeat, freshNoise },
    random: stream(seed, "act"),
    noise,
    noiseParts: readParts(noise, actor),
    drawn: -1,
    process: processSize === 0 ? undefined : ornsteinUhlenbeck(numEnvs, processSize),
  }
}

/**
 * Returns the parts of the noise array that an actor reads. If all rows share some noise, only the first row's copy of
 * it is read.
 */
const readParts = (noise: Float32Array, actor: Actor): ReadonlyArray<Float32Array> => {
  const { noiseSize, sharedNoiseSize = 0 } = actor
  if (sharedNoiseSize === 0) return [noise]
  const own = noiseSize - sharedNoiseSize
  return Array.from({ length: noise.length / noiseSize }, (_, row) =>
    noise.subarray(row * noiseSize, row * noiseSize + (row === 0 ? noiseSize : own)),
  )
}

/** Takes the steps of one rollout. It yields the acting program each time that it has to run; `drive` runs it. */
export const playReplayRollout = function* (
  rollout: ReplayRollout,
  envs: AnyBatchEnv,
  { iteration, step }: Position,
): Steps<number> {
  const { acting, act, replay, prioritised, envActions, steps, sharing, process } = rollout
  const { numEnvs } = acting.task
  const remembers = acting.actor.memorySize > 0
  const actsAtRandom = !remembers && acting.actsAtWarmup !== true
  if (iteration === 0) replay.begin(envs)
  for (let t = 0; t < steps; t++) {
    const now = step + t * numEnvs
    const count = iteration * steps + t
    const draw = drawOf(sharing, steps, { iteration, t })
    if (now < acting.config.learningStarts && actsAtRandom) actAtRandom(rollout, envs, now, count, draw)
    else {
      feedActor(rollout, envs, now, count, draw)
      yield act
    }
    const wait = envs.step(envActions)
    if (wait !== undefined) yield waitFor(wait)
    if (remembers) remember(rollout, envs)
    process?.afterStep(envs)
    replay.add(envActions, envs)
    prioritised?.added()
  }
  return steps * numEnvs
}

/**
 * Draws the actions of the run's step number `now` at random from the whole space, and adds `warmUpNoise` if the
 * algorithm has it.
 */
const actAtRandom = (
  { acting, envActions, sharing, process, random: all }: ReplayRollout,
  envs: AnyBatchEnv,
  now: number,
  count: number,
  draw: number,
): void => {
  const { task, warmUpNoise } = acting
  // If state-dependent noise is on, several steps share `draw`; random actions differ in each step, so use `count`.
  const random = all.child("random", sharing.freshNoise ? count : draw)
  randomActions(task, envs.observations, random, envActions)
  if (warmUpNoise === undefined || task.actionSpace._tag !== "Box") return
  const deviation = warmUpNoise(now / task.totalSteps)
  const noise = random.child("noise")
  if (beginsDraw(sharing, count)) process?.step(noise)
  addNoise(task.actionSpace, (place) => deviation * (process?.values[place] ?? noise.normal()), envActions)
}

/** Fills the inputs of the acting program for the run's step number `now`. */
const feedActor = (rollout: ReplayRollout, envs: AnyBatchEnv, now: number, count: number, draw: number): void => {
  const { acting, act, replay, sharing, random, noise, noiseParts, process } = rollout
  const { task, actor, exploration, config } = acting
  act.feeds.observations.set(envs.observations)
  if (draw !== rollout.drawn) {
    const own = random.child(draw)
    for (const part of noiseParts) own.fillUniform(part)
  }
  rollout.drawn = draw
  if (beginsDraw(sharing, count)) process?.step(random.child(draw))
  if (actor.noiseSize > 0) act.feeds.noise.set(noise)
  if (process !== undefined) act.feeds.process.set(process.values)
  // An actor with a memory acts from the start, so that its memory fits the steps; at first, ε is 1, so its actions are
  // random.
  if (exploration !== undefined) {
    act.feeds.exploration[0] = now < config.learningStarts ? 1 : exploration(now / task.totalSteps)
  }
  if (actor.memorySize > 0) act.feeds.memory.set(replay.memories)
}

/**
 * Tells whether a step is the first of its draw. The Ornstein-Uhlenbeck process moves once per draw, even if the run
 * was resumed within the draw.
 */
const beginsDraw = ({ noiseRepeat }: NoiseSharing, count: number): boolean => count % noiseRepeat === 0

/** Stores the memories after a step, and empties those of envs whose episode ended with it. */
const remember = ({ acting, act, replay }: ReplayRollout, { terminated, truncated }: AnyBatchEnv): void => {
  const { memorySize } = acting.actor
  replay.memories.set(act.results.nextMemory)
  for (let env = 0; env < acting.task.numEnvs; env++) {
    if ((terminated[env] | truncated[env]) !== 0) replay.memories.fill(0, env * memorySize, (env + 1) * memorySize)
  }
}
