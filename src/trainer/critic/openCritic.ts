/** Opens the critic of a run, which goes on from the state that the step before has left. */
import { Effect, type Scope } from "effect"
import type { TrainingSample } from "../batches/TrainingSample.ts"
import type { OrchestratorConfig } from "../config/OrchestratorConfig.ts"
import type { Usable } from "../orchestrator/advantages.ts"
import type { RunFolder } from "../runs/guardedFolder.ts"
import type { FeatureReader } from "../teacher/compileScorer.ts"
import type { OwnWeights } from "../trainer/TrainedModel.ts"
import { type CriticState, makeCritic } from "./critic.ts"
import { criticAfter, criticised, encodeCritic } from "./criticised.ts"

interface CriticRun {
  readonly run: { readonly id: string; readonly config: OrchestratorConfig }
  readonly features?: Effect.Effect<FeatureReader, { readonly message: string }, Scope.Scope> | null
  readonly ownWeights?: () => OwnWeights | undefined
}

/** The critic of a run. */
export type Critic = NonNullable<Effect.Success<ReturnType<typeof openCritic>>>

/** Opens the critic of a run, if it has one. It works until the scope closes. */
export const openCritic = Effect.fnUntraced(function* (
  { run: { id, config: all }, features, ownWeights = () => undefined }: CriticRun,
  folder: RunFolder,
) {
  const { critic: config, supervised, batch } = all
  if (config === null || features === undefined || features === null) return undefined
  const reader = yield* features
  /** The newest state, and the step that left it. */
  let newest: { readonly step: number; readonly state: CriticState } | undefined
  const before = (step: number) => {
    if (newest?.step === step - 1) return Effect.succeed(newest.state)
    return step === supervised.steps
      ? Effect.succeed(makeCritic(reader.size))
      : criticAfter(folder, step - 1, reader.size)
  }
  return {
    /** Gives the samples of a step their advantages, and learns from them. Also returns the content of the critic's file. */
    valued: Effect.fnUntraced(function* (
      samples: ReadonlyArray<TrainingSample>,
      usable: ReadonlyArray<Usable>,
      step: number,
    ) {
      const { positiveOnly } = batch
      const place = { run: id, step, config, reader, positiveOnly, own: ownWeights() }
      const { state, ...valued } = yield* criticised(samples, usable, { ...place, state: yield* before(step) })
      newest = { step, state }
      return { ...valued, critic: encodeCritic(state) }
    }),
  }
})
