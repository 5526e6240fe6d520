/** Plays one training episode of an agent, for `loop.ts`, and for `spread/` on other machines. It records nothing. */
import { Clock, Effect } from "effect"
import type { Agent } from "../agent/Agent.ts"
import type { RolloutStep } from "../episode/Rollout.ts"
import * as SingleAgent from "../episode/protocols/SingleAgent.ts"
import { scored, type TimedStep } from "../evaluate/PlayedEpisode.ts"
import { CallContext } from "../lm/Lm.ts"
import { stream } from "../../base/rng/Rng.ts"
import type { TaskSet } from "../task/TaskSet.ts"
import type { AgentTraining } from "./AgentTraining.ts"

/** Plays the episode of a task with this agent. `onStep` receives each scored step, with its times. */
export const playTrainingEpisode = Effect.fnUntraced(function* (
  { settings }: AgentTraining,
  train: TaskSet,
  { agent, index, onStep }: { agent: Agent; index: number; onStep: (step: TimedStep) => Effect.Effect<void> },
) {
  const episode = index + 1
  const env = yield* train.at(index)
  const random = stream(settings.seed, "train", index)
  const envSeed = random.uint32()
  const samplingSeed = random.uint32()
  let startedAtMillis = yield* Clock.currentTimeMillis
  const timed = Effect.fnUntraced(function* (step: RolloutStep) {
    const scoredStep = scored(step)
    if (scoredStep === undefined) return
    const endedAtMillis = yield* Clock.currentTimeMillis
    yield* onStep({ ...scoredStep, startedAtMillis, endedAtMillis })
    startedAtMillis = endedAtMillis
  })
  return yield* SingleAgent.play(
    agent,
    { id: `train-${episode}`, env, envSeed, samplingSeed, onStep: timed },
    { maxSteps: settings.runtime.maxStepsPerEpisode },
  ).pipe(Effect.provideService(CallContext, { phase: { _tag: "train" }, purpose: "action", episode, step: 0 }))
})
