/**
 * Checks an env for the rules on which batches, checkpoints and replays rely: the same state, action and random stream
 * give the same step; states are plain data that no later call changes; observations are in their space. During the
 * check it replaces `Math.random`, `Date` and the like on the global objects, to notice their use.
 *
 * @example
 * ```ts
 * import { CartPole, checkEnv } from "effect-rl"
 *
 * checkEnv(CartPole.env) // []
 * ```
 */
import { display } from "../../base/config/Config.ts"
import { messageOf } from "../../base/text/text.ts"
import { type Stream, stream } from "../../base/rng/Rng.ts"
import * as Batch from "./Batch.ts"
import type { BatchEnv } from "./BatchEnv.ts"
import { type ActionOf, type Env, rowSpaceOf } from "./Env.ts"
import { fromText, NotPlain, toText } from "./internal/plainData.ts"
import { drawAllowed, maskWriter } from "./internal/rows.ts"
import { type ActionSpace, choicesOf, isWhole, maskSizeOf, problemOf, sample, sampleInto, sizeOf } from "./Space.ts"

export interface Fault {
  /**
   * - `chance`: the env used randomness other than its stream, or the time
   * - `repeatable`: the same state, action and stream gave another step
   * - `in place`: a state was changed after it was returned
   * - `plain`: a state isn't plain data, so it cannot be saved
   * - `restored`: a saved and restored state gave another step
   * - `observation`, `reward`, `ending`: a step returned a wrong value (`ending`: of `terminated` or `truncated`)
   * - `mask`: an action mask is wrong, or forbids everything in a state that is not terminal
   * - `batch`: the env's own `batch` gave other results than its `step`
   * - `throws`: the env threw an error
   */
  readonly rule:
    | "chance"
    | "repeatable"
    | "in place"
    | "plain"
    | "restored"
    | "observation"
    | "reward"
    | "ending"
    | "mask"
    | "batch"
    | "throws"
  readonly message: string
}

interface CheckOptions {
  readonly seed?: number
  /** The number of episodes to play. Default: 3. */
  readonly episodes?: number
  /** The largest number of steps per episode. Default: 200. */
  readonly steps?: number
}

/** Plays a few random episodes and returns the first fault of each rule. No fault is a good sign, not a proof. */
export const check = (env: Env, { seed = 0, episodes = 3, steps = 200 }: CheckOptions = {}): ReadonlyArray<Fault> => {
  const faults = new Map<Fault["rule"], Fault>()
  const report = (rule: Fault["rule"], where: string, what: string): void => {
    if (!faults.has(rule)) faults.set(rule, { rule, message: `${env.id}, ${where}: ${what}` })
  }
  for (let episode = 0; episode < episodes; episode++) {
    try {
      watchChance(
        (name) =>
          report("chance", `episode ${episode}`, `it used ${name}; draw from the stream in the arguments instead`),
        () => playOne(env, { seed, episode, steps }, report),
      )
    } catch (error) {
      report("throws", `episode ${episode}`, messageOf(error))
    }
  }
  if (env.batch !== undefined && faults.size === 0) checkBatch(env, { seed, steps }, report)
  return [...faults.values()]
}

type FaultReport = (rule: Fault["rule"], where: string, what: string) => void

const playOne = (
  env: Env,
  { seed, episode, steps }: { readonly seed: number; readonly episode: number; readonly steps: number },
  report: FaultReport,
): void => {
  // Makes the episode's stream anew at each call: drawing advances a stream, but repeated steps must draw the same.
  const chance = () => stream(seed, "check", episode, "env")
  const actions = stream(seed, "check", episode, "actions")
  const saved = (state: unknown, where: string): string | undefined => {
    try {
      return toText(state)
    } catch (error) {
      if (!(error instanceof NotPlain)) throw error
      report("plain", where, `a state must be plain data, but ${error.path} is ${error.kind}`)
      return undefined
    }
  }
  let state = env.reset(chance().child("reset"))
  const first = saved(state, "the beginning")
  if (first !== undefined && first !== saved(env.reset(chance().child("reset")), "the beginning")) {
    report("repeatable", "the beginning", "another reset with the same stream gave another state")
  }
  checkObservation(env, state, "the beginning", report)
  let mask = checkMask(env, state, "the beginning", report)

  for (let step = 1; step <= Math.min(steps, env.maxSteps ?? Infinity); step++) {
    const where = `step ${step} of episode ${episode}`
    const action = drawAction(env, mask, actions)
    const random = () => chance().child("step", step)
    const before = saved(state, where)
    const next = env.step(state, action, random())
    if (before !== saved(state, where)) report("in place", where, "the step changed the state in its arguments")
    const after = saved(next.state, where)

    if (!Number.isFinite(next.reward)) report("reward", where, `expected a finite number, found ${next.reward}`)
    for (const flag of ["terminated", "truncated"] as const) {
      const value: unknown = next[flag]
      if (typeof value === "boolean" || (flag === "truncated" && value === undefined)) continue
      report("ending", where, `${flag}: expected true or false, found ${String(value)}`)
    }
    checkObservation(env, next.state, where, report)
    if (after !== saved(next.state, where)) report("in place", where, "observing changed the state")
    const again = env.step(state, action, random())
    if (!sameStep(next, again) || after !== saved(again.state, where)) {
      report("repeatable", where, "the same state, action and stream gave another step")
    }
    if (after !== saved(next.state, where)) report("in place", where, "a later step changed a state returned before")
    if (before !== undefined) {
      const restored = env.step(fromText(before), action, random())
      if (!sameStep(next, restored) || after !== saved(restored.state, where)) {
        report("restored", where, "a step from the saved state differs")
      }
    }
    if (next.terminated || next.truncated === true) return
    state = next.state
    mask = checkMask(env, state, where, report)
    if (after !== saved(state, where)) report("in place", where, "asking for the action mask changed the state")
  }
}

/** Tells whether two steps have the same reward and flags. The caller compares their states, as text. */
const sameStep = (one: ReturnType<Env["step"]>, other: ReturnType<Env["step"]>): boolean =>
  Object.is(one.reward, other.reward) &&
  one.terminated === other.terminated &&
  (one.truncated ?? false) === (other.truncated ?? false)

const isNumbers = (value: unknown): value is ArrayLike<number> =>
  typeof value === "object" && value !== null && "length" in value

const checkObservation = (env: Env, state: unknown, where: string, report: FaultReport): void => {
  const { observationSpace: space } = env
  const observation: unknown = env.observe(state)
  if (space._tag !== "Box") {
    const problem = problemOf(space, observation, "observation")
    if (problem !== undefined) report("observation", where, problem)
    return
  }
  if (!isNumbers(observation)) return report("observation", where, `expected numbers, found ${display(observation)}`)
  const seen = Array.from(observation)
  const size = sizeOf(space)
  if (seen.length !== size) return report("observation", where, `expected ${size} numbers, found ${seen.length}`)
  // Both sides are rounded to float32, because a batch stores observations as float32.
  const isInside = (value: number, index: number): boolean =>
    Math.fround(value) >= Math.fround(space.low[index]) && Math.fround(value) <= Math.fround(space.high[index])
  const wrong = seen.findIndex((value, index) => !isInside(value, index))
  if (wrong < 0) return
  const range = `from ${space.low[wrong]} to ${space.high[wrong]}`
  report("observation", where, `number ${wrong}: expected one ${range}, found ${seen[wrong]}`)
}

/** Returns the action mask of a state, and reports it if it is wrong; undefined if it is wrong or there is none. */
const checkMask = (env: Env, state: unknown, where: string, report: FaultReport): Float32Array | undefined => {
  const write = maskWriter(env)
  if (write === undefined) return undefined
  const mask = new Float32Array(maskSizeOf(rowSpaceOf(env)))
  const problem = write(state, false, mask, 0)
  if (problem === undefined) return mask
  report("mask", where, problem)
  return undefined
}

/** Draws a random action that the mask allows. */
const drawAction = (env: Env, mask: Float32Array | undefined, random: Stream): ActionOf<ActionSpace> => {
  const { actionSpace } = env
  const choices = choicesOf(actionSpace)
  if (mask === undefined || choices === undefined) return sample(actionSpace, random)
  const action = new Int32Array(choices.length)
  drawAllowed({ _tag: "Masked", space: { _tag: "Tuple", parts: [] }, choices }, mask, random, action)
  return actionSpace._tag === "Discrete" ? action[0] : [...action]
}

/** JavaScript's functions for randomness and time, which an env must not use: each is the property `key` of `owner`. */
const chanceSources: ReadonlyArray<readonly [name: string, owner: object, key: string]> = [
  ["Math.random", Math, "random"],
  ["Date.now", Date, "now"],
  ["the current Date", globalThis, "Date"],
  ["performance.now", performance, "now"],
  ["crypto.getRandomValues", crypto, "getRandomValues"],
  ["crypto.randomUUID", crypto, "randomUUID"],
]

/** Runs `body` with each chance source replaced by one that also reports its use; then restores the original ones. */
const watchChance = (report: (name: string) => void, body: () => void): void => {
  // A web page without HTTPS has no crypto.randomUUID.
  const present = chanceSources.filter(([, owner, key]) => typeof Reflect.get(owner, key) === "function")
  const restoreAll = present.map(([name, owner, key]) => {
    const own = Object.getOwnPropertyDescriptor(owner, key)
    const value = new Proxy<() => unknown>(Reflect.get(owner, key), {
      apply: (target, _self, args) => {
        report(name)
        return Reflect.apply(target, owner, args)
      },
      construct: (target, args, newTarget) => {
        if (args.length === 0) report(name)
        return Reflect.construct(target, args, newTarget)
      },
    })
    Object.defineProperty(owner, key, { configurable: true, writable: true, value })
    return () => (own === undefined ? Reflect.deleteProperty(owner, key) : Object.defineProperty(owner, key, own))
  })
  try {
    body()
  } finally {
    for (const restore of restoreAll) restore()
  }
}

const numEnvs = 3

/** Steps the env's own batch and one that calls `step` for each env with the same actions; reports a difference. */
const checkBatch = (
  env: Env,
  { seed, steps }: { readonly seed: number; readonly steps: number },
  report: FaultReport,
): void => {
  const fast = Batch.make(env, numEnvs)
  const slow = Batch.oneByOne(env, numEnvs)
  const random = stream(seed, "check", "batch")
  for (const batch of [fast, slow]) batch.reset(seed, "check")
  for (let step = 0; step <= steps; step++) {
    const difference = differing(fast, slow, step > 0)
    if (difference !== undefined) return report("batch", `step ${step}`, `its batch gave other ${difference}`)
    const actions = actionsOf(env, slow, random)
    for (const batch of [fast, slow]) batch.step(actions)
  }
}

const actionsOf = (env: Env, { observations }: BatchEnv, random: Stream): Int32Array | Float32Array => {
  const { actionSpace } = env
  const size = sizeOf(actionSpace)
  const actions = isWhole(actionSpace) ? new Int32Array(numEnvs * size) : new Float32Array(numEnvs * size)
  const space = rowSpaceOf(env)
  if (space._tag === "Masked") drawAllowed(space, observations, random, actions)
  else for (let index = 0; index < numEnvs; index++) sampleInto(actionSpace, random, actions, index * size)
  return actions
}

const differing = (fast: BatchEnv, slow: BatchEnv, stepped: boolean): string | undefined =>
  (["observations", ...(stepped ? (["rewards", "terminated", "truncated"] as const) : [])] as const).find(
    (key) => !fast[key].every((value, index) => Object.is(value, slow[key][index])),
  )
