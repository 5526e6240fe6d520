/**
 * Connects a trainer with the orchestrators of its runs, which play the tasks. Orchestrators in this process ask the
 * trainer's engine; orchestrators in other processes ask inference servers, which read the weights from the runs' folders.
 */
import { Effect, type Scope } from "effect"
import * as EngineLm from "../../decoder/engine/EngineLm.ts"
import type * as Lms from "../../agents/lm/Lms.ts"
import { DataLoader } from "../batches/DataLoader.ts"
import type { TrainerEngine } from "../engine/startEngine.ts"
import { makeWeightLoads } from "../engine/weightLoads.ts"
import { registerEndings } from "../outside/endings.ts"
import { publishOrEvict } from "../outside/publishing.ts"
import type { Placement } from "../placement/PlacedOrchestrators.ts"
import { Runs } from "../runs/Runs.ts"
import type { RunSlot } from "../runs/RunSlot.ts"
import type { OwnWeights, TrainedModel } from "../trainer/TrainedModel.ts"
import type { Broadcasts } from "../weights/Broadcasts.ts"
import type { DiscoveredRun } from "../runs/RunSlot.ts"
import { modelNameOf, type Prepared, registerOrchestrators } from "./orchestrators.ts"

type Conclude = (run: RunSlot) => Effect.Effect<void, { readonly message: string }>

/** The connection of the trainer with its orchestrators. */
export interface Playing {
  /** Makes new weights of a run available, when the run begins and after each update. */
  readonly publish: (run: RunSlot) => Effect.Effect<void, { readonly message: string }>
  /** Writes the weights of the runs that were updated in a turn as broadcasts. */
  readonly afterTurn: (
    updated: ReadonlyArray<RunSlot>,
    broadcasts: Broadcasts["Service"],
    runs: Runs["Service"],
  ) => Effect.Effect<unknown>
  /** Registers the hooks that start and stop the orchestrators of the runs. `conclude` is called for a run that has ended. */
  readonly register: (conclude: Conclude) => Effect.Effect<void, never, Runs | DataLoader | Lms.LmNeeds | Scope.Scope>
  /** The number of tokens that this process has generated. */
  readonly generatedTokens: Effect.Effect<number>
}

/** Makes the model of a run from something that generates. */
export const policyOf = (prepared: Prepared, engine: EngineLm.EngineLmOptions["engine"], run: DiscoveredRun) => {
  const { topP, topK, minP, stopTokenIds } = run.config.sampling
  const sampling = { topP, minP, stopTokenIds, ...(topK === null ? {} : { topK }) }
  return EngineLm.make({ engine, chat: prepared.base.chat, model: modelNameOf(prepared, run), sampling })
}

/** Connects the trainer with orchestrators in this process, which ask its engine. */
export const playingInside = Effect.fnUntraced(function* (
  prepared: Prepared,
  model: TrainedModel,
  trainerEngine: TrainerEngine,
): Effect.fn.Return<Playing, never, Runs | DataLoader | Scope.Scope> {
  const { gathering, engine } = trainerEngine
  const hasAdapters = prepared.settings.trainer.lora !== null
  const { wake, ready } = yield* DataLoader
  gathering?.follow(ready)
  const loadWeights = yield* makeWeightLoads({
    trainerEngine,
    model,
    runs: yield* Runs,
    loaded: ({ own }, step) => own.loaded.reach(step),
  })
  /** The newest complete weights of the runs that teach themselves, or have a critic. */
  const ownWeights = new WeakMap<RunSlot, OwnWeights>()
  return {
    publish: (run) =>
      Effect.suspend(() => {
        const { teacher, critic } = run.config
        if (teacher?.type === "self" || critic !== null) ownWeights.set(run, model.ownWeightsOf(run.index))
        return loadWeights(run)
      }),
    afterTurn: (updated, { publishMeanwhile }) =>
      Effect.ensuring(
        publishMeanwhile(updated),
        Effect.sync(() => gathering?.look()),
      ),
    register: (conclude) =>
      registerOrchestrators(
        prepared,
        {
          of: (run) => policyOf(prepared, engine, run),
          release: ({ id }) => (hasAdapters ? Effect.ignore(engine.unloadAdapter(id)) : Effect.void),
        },
        (run, parts) => ({
          run,
          ...parts,
          awaitWeights: (step) => run.own.loaded.await(step),
          ...(gathering === undefined ? {} : { beforePlaying: gathering.enter }),
          handedOver: wake(run),
          ownWeights: () => ownWeights.get(run),
        }),
        conclude,
      ),
    generatedTokens: trainerEngine.generatedTokens,
  }
})

/** Connects the trainer with orchestrators in other processes, only through files in the runs' folders. */
export const playingOutside = (
  { baseDir }: Pick<Prepared, "baseDir">,
  play: Placement["play"],
): Effect.Effect<Playing> =>
  Effect.succeed({
    publish: () => Effect.void,
    afterTurn: publishOrEvict,
    register: (conclude) => registerEndings(baseDir, conclude, play),
    generatedTokens: Effect.succeed(0),
  })
