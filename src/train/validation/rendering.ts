import { Effect, type Scope } from "effect"
import type { Learner, LearnerError } from "../../algorithm/Algorithm.ts"
import { drive } from "../../algorithm/drive.ts"
import * as Batch from "../../env/Batch.ts"
import type { Env } from "../../env/Env.ts"
import * as Normalise from "../../env/Normalise.ts"
import type { RunningMoments } from "../../env/RunningMoments.ts"
import type { RunFiles } from "../../experiment/RunFiles.ts"
import type { RunStoreError } from "../../experiment/RunStoreError.ts"

/** One validation episode to look at: a moving picture where the env can draw, and what happened, step by step. */

export interface RenderOptions {
  readonly maxSteps: number
  /** Steps a second that the picture plays. */
  readonly speed: number
}

interface Step {
  readonly observation: ReadonlyArray<number>
  readonly action: ReadonlyArray<number>
  readonly reward: number
  readonly terminated: boolean
  readonly truncated: boolean
}

/** More pictures than this make a file that no browser likes; of a longer episode every second, third … is shown. */
const mostFrames = 500

/** Plays the first validation episode of this index by the best actions, and keeps it below `steps/{step}/`. */
export const makeRenderer = Effect.fnUntraced(function* (
  env: Env,
  policyFor: NonNullable<Learner["policy"]>,
  moments: RunningMoments | undefined,
  { maxSteps, speed }: RenderOptions,
): Effect.fn.Return<Renderer, PolicyError, Scope.Scope> {
  const policy = yield* policyFor(1)
  const plain = Batch.make(env, 1)
  const seen = moments === undefined ? plain : Normalise.observations(plain, { moments, frozen: true })
  return Effect.fnUntraced(function* (run, seed, index) {
    yield* policy.refresh
    const steps: Array<Step> = []
    const frames: Array<string> = []
    const draw = (): void => void (plain.renderSvg === undefined || frames.push(plain.renderSvg(0)))
    yield* drive(function* () {
      seen.reset(seed, "validation", index)
      for (let over = false; !over;) {
        draw()
        const observation = Array.from(plain.observations)
        policy.observations.set(seen.observations)
        yield policy.program
        seen.step(policy.actions)
        const terminated = seen.terminated[0] === 1
        const truncated = seen.truncated[0] === 1 || (!terminated && steps.length + 1 >= maxSteps)
        steps.push({ observation, action: Array.from(policy.actions), reward: seen.rewards[0], terminated, truncated })
        over = terminated || truncated
      }
    })
    const folder = `steps/${String(index).padStart(15, "0")}`
    yield* run.write(`${folder}/trajectories.json`, `${JSON.stringify([{ trajectory: steps }])}\n`)
    if (frames.length > 0) yield* run.write(`${folder}/episode.svg`, animate(frames, speed))
    return folder
  })
})

/** Plays and keeps an episode, and says where. */
export type Renderer = (
  run: RunFiles,
  seed: number,
  index: number,
) => Effect.Effect<string, LearnerError | RunStoreError>

type PolicyError = Effect.Error<ReturnType<NonNullable<Learner["policy"]>>>

/** Pictures one after another, over and over: plain SVG, that any browser plays. */
export const animate = (pictures: ReadonlyArray<string>, speed: number): string => {
  const stride = Math.ceil(pictures.length / mostFrames)
  const frames = pictures.filter((_, index) => index % stride === 0)
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
