/** Plays an episode and renders its states as an SVG animation, for `stepFolder.ts`. It writes no files. */
import { Effect } from "effect"
import type { Learner } from "../../learner/Learner.ts"
import { drive, waitFor } from "../../learner/drive.ts"
import * as Batch from "../../env/Batch.ts"
import type { Env } from "../../env/Env.ts"
import type { Step } from "../../env/ui/Ui.ts"
import * as Normalise from "../../env/Normalise.ts"
import type { RunningMoments } from "../../env/RunningMoments.ts"
import { stream } from "../../../base/rng/Rng.ts"
import type { Film } from "../validate.ts"
import type { TrainingEnvs } from "../envs.ts"
import type { Plan } from "../plan.ts"

/** The largest number of pictures in an animation, for browsers. It shows every n-th state of a longer episode, and the last. */
const mostFrames = 500

/**
 * Makes a function `(seed, index, episode)` that plays one episode exactly as the validation with this seed and index
 * does, and returns its steps and a picture (an SVG) of each state. An episode of a game of several agents has the actions
 * of all agents, and the observation and the reward of the first one.
 */
export const makePlayer = Effect.fnUntraced(function* (
  env: Env,
  policyFor: NonNullable<Learner["policy"]>,
  moments: RunningMoments | undefined,
  { maxSteps, sampled }: { readonly maxSteps: number; readonly sampled: boolean },
) {
  const { length: rows } = env.agents ?? [env.id]
  const policy = yield* policyFor(rows, { sampled })
  const width = (policy.noise?.length ?? 0) / rows
  return Effect.fnUntraced(function* (seed: number, index: number, episode: number) {
    yield* policy.refresh
    const watched = watch(env)
    const plain = yield* Batch.open(watched.env, rows, { firstIndex: episode * rows })
    const seen = moments === undefined ? plain : Normalise.observations(plain, { moments, frozen: true })
    const randoms = Array.from({ length: rows }, (_, row) =>
      stream(seed, "validation", index, episode * rows + row, "actions"),
    )
    const steps: Array<Step & { readonly observation: ReadonlyArray<number> }> = []
    const frames: Array<string> = []
    yield* drive(function* () {
      const wait = seen.reset(seed, "validation", index)
      if (wait !== undefined) yield waitFor(wait)
      for (let over = false; !over;) {
        const state = env.agents === undefined ? watched.state() : plain.stateAt?.(0)
        if (plain.isAsync === true) {
          if (plain.renderSvg !== undefined) {
            yield waitFor(Effect.map(plain.renderSvg(0), (picture) => void frames.push(picture)))
          }
        } else if (env.renderSvg !== undefined) frames.push(env.renderSvg(state))
        const observation = Array.from(plain.observations.subarray(0, plain.observationSize))
        policy.observations.set(seen.observations)
        for (const [row, random] of randoms.entries()) {
          if (policy.noise !== undefined) random.fillUniform(policy.noise, row * width, (row + 1) * width)
        }
        if (policy.search === undefined) yield policy.program
        else yield* policy.search(seen, 0)
        const wait = seen.step(policy.actions)
        if (wait !== undefined) yield waitFor(wait)
        const terminated = seen.terminated[0] === 1 && seen.livesLost?.[0] !== 1
        const truncated = seen.truncated[0] === 1 || (!terminated && steps.length + 1 >= maxSteps)
        const action = Array.from(policy.actions)
        steps.push({ state, observation, action, reward: (seen.scores ?? seen.rewards)[0], terminated, truncated })
        over = terminated || truncated
      }
    })
    return { steps, frames }
  }, Effect.scoped)
})

/**
 * Plays the first episodes of the validation at a step, for their pictures. Returns undefined if the algorithm has no
 * policy that could play.
 */
export const filmOf = Effect.fnUntraced(function* (
  { plan, learner, envs }: { readonly plan: Plan; readonly learner: Learner; readonly envs: TrainingEnvs },
  step: number,
  episodes: number,
) {
  const { seed, validation, render } = plan.settings
  const [env] = plan.validationEnvs
  if (learner.policy === undefined) return undefined
  const play = yield* makePlayer(env, learner.policy, envs.observationMoments, validation)
  const film: Film = {
    env: env.id,
    episodes: yield* Effect.forEach(
      Array.from({ length: episodes }, (_, index) => index),
      (index) => Effect.map(play(seed, step, index), ({ frames }) => frames),
    ),
    speed: render.speed,
  }
  return film
})

/**
 * Wraps an env, so that `state()` returns its current state. The wrapped env lacks `batch`, the fast implementation,
 * which does not expose its states.
 */
const watch = (env: Env): { readonly env: Env; readonly state: () => unknown } => {
  // A foreign env's state is in another program, and a game's state is in its batch.
  if (env.open !== undefined || env.agents !== undefined) return { env, state: () => null }
  let last: unknown
  const { batch: _batch, ...pure } = env
  return {
    state: () => last,
    env: {
      ...pure,
      reset: (random) => (last = env.reset(random)),
      step: (state, action, random) => {
        const transition = env.step(state, action, random)
        last = transition.state
        return transition
      },
    },
  }
}

/** Makes one SVG that shows SVG pictures one after another, `speed` per second, and repeats without end. */
export const animate = (pictures: ReadonlyArray<string>, speed: number): string => {
  const last = pictures.length - 1
  const stride = Math.max(1, Math.ceil(last / (mostFrames - 1)))
  const frames = pictures.filter((_, index) => index % stride === 0 || index === last)
  const seconds = (frames.length * stride) / speed
  const [, box = "0 0 400 300"] = /viewBox="([^"]+)"/.exec(frames[0]) ?? []
  const share = (index: number): string => (index / frames.length).toFixed(5)
  const parts = frames.map((frame, index) => {
    const values = index === 0 ? "inline;none" : "none;inline;none"
    const times = index === 0 ? `0;${share(1)}` : `0;${share(index)};${share(index + 1)}`
    const animation = `<animate attributeName="display" values="${values}" keyTimes="${times}" dur="${seconds}s" calcMode="discrete" repeatCount="indefinite"/>`
    return `<g display="${index === 0 ? "inline" : "none"}">${frame}${animation}</g>`
  })
  const [, , width, height] = box.split(" ")
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}" width="${width}" height="${height}">\n${parts.join("\n")}\n</svg>\n`
}
