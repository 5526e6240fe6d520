/** Trains the runs of a config with `trainer.type: tinker`: on a server of Tinker's protocol, with tasks and objectives here. */
import { Context, Deferred, Effect, Layer, Path } from "effect"
import { CurrentRun } from "../../../run/CurrentRun.ts"
import { DataLoader } from "../../batches/DataLoader.ts"
import { policyOf } from "../../orchestrator/playing.ts"
import type { Playing } from "../../orchestrator/playing.ts"
import { registerOrchestrators } from "../../orchestrator/orchestrators.ts"
import { rankServices } from "../../ranks/rankParts.ts"
import { Store } from "../../store/Store.ts"
import { TrainerError } from "../../TrainerError.ts"
import { Broadcasts } from "../../weights/Broadcasts.ts"
import { type Prepared, type State, type TrainerEvents, work } from "../../work.ts"
import { TinkerClient } from "../client/TinkerClient.ts"
import { fromClient, makeServerRuns, type ServerRuns } from "./ServerRuns.ts"
import { makeServerPolicy } from "./serverPolicy.ts"
import { makeServerTrainer } from "./ServerTrainer.ts"

/** The most models of a server that a message names. */
const mostNamed = 20

/** Fails if the server does not train the config's model; returns the server's name of it. */
const checkModel = Effect.fnUntraced(function* (client: TinkerClient["Service"], { settings, base }: Prepared) {
  const paths = yield* Path.Path
  const wanted = settings.trainer.baseModel ?? paths.basename(base.name)
  const models = yield* client.baseModels
  const found = models.find(({ name }) => name === wanted)
  if (found === undefined) {
    const names = models.slice(0, mostNamed).map(({ name }) => name)
    const shown = [...names, ...(models.length > mostNamed ? ["…"] : [])].join(", ")
    return yield* TrainerError.at(
      "trainer.base_model",
      `expected a model of ${client.address} (${shown}), found ${wanted}`,
    )
  }
  const { width } = settings.trainer
  if (found.maxLength !== null && width > found.maxLength)
    return yield* TrainerError.at(
      "trainer.width",
      `expected at most ${found.maxLength}, the most tokens of the server's model, found ${width}`,
    )
  return wanted
})

/** Makes the service of the server's client, which keeps a session until the scope closes. */
const connectTo = Effect.fnUntraced(function* ({ settings: { trainer } }: Prepared) {
  const address = { baseUrl: trainer.baseUrl ?? "", apiKey: trainer.apiKey }
  return Context.get(yield* Layer.build(TinkerClient.layer(address)), TinkerClient)
})

/** Connects the runs with orchestrators in this process, which ask the server's models. */
const playingOnServer = Effect.fnUntraced(function* (
  prepared: Prepared,
  serverRuns: ServerRuns,
  lost: Deferred.Deferred<never, TrainerError>,
) {
  const { wake } = yield* DataLoader
  const { base, settings } = prepared
  const policy = makeServerPolicy({
    serverRuns,
    language: base,
    vocabSize: base.decoder.vocabSize,
    maxLength: Math.min(base.decoder.maxPositions, settings.trainer.width),
    lost,
  })
  const playing: Playing = {
    publish: (run) => Effect.map(serverRuns.publish(run), () => run.own.loaded.reach(run.progress.step)),
    // The weights stay on the server.
    afterTurn: () => Effect.void,
    register: (conclude) =>
      registerOrchestrators(
        prepared,
        { of: (run) => policyOf(prepared, policy, run), release: () => Effect.void },
        (run, parts) => ({
          run,
          ...parts,
          awaitWeights: (step) => run.own.loaded.await(step),
          handedOver: wake(run),
        }),
        conclude,
      ),
    generatedTokens: policy.generatedTokens,
  }
  return playing
})

/** The seconds in which the server must have answered after an interruption, so that the runs can be saved. */
export const SecondsToSave = Context.Reference<number>("effect-rl/tinker/SecondsToSave", { defaultValue: () => 20 })

/**
 * Waits for an interruption. Some requests are not interrupted, so that each is counted once and all runs are saved; if the server
 * does not answer them in time, this lets them fail. The last checkpoints then stay the newest ones.
 */
const givingUp = Effect.fnUntraced(function* ({ giveUp }: Pick<TinkerClient["Service"], "giveUp">) {
  const scope = yield* Effect.scope
  const seconds = yield* SecondsToSave
  const later = Effect.andThen(Effect.sleep(`${seconds} seconds`), giveUp)
  return yield* Effect.onInterrupt(Effect.never, () => Effect.forkIn(later, scope))
})

/** Connects with the server, and trains until all runs have ended. Saves all runs if it is interrupted. */
export const trainOnServer = Effect.fnUntraced(function* (prepared: Prepared, state: State) {
  const { settings, base } = prepared
  const { files } = yield* CurrentRun
  const lost = yield* Deferred.make<never, TrainerError>()
  const outputDirectory = files.directory
  const ranks = { settings, base, outputDirectory, rank: 0, store: Store.memory(), pollInterval: "1 second" } as const
  const services = Broadcasts.layer({ keep: 0, contents: () => Effect.succeed({}) }).pipe(
    Layer.provideMerge(rankServices(ranks)),
  )
  const { client, baseModel } = yield* Effect.gen(function* () {
    const client = yield* connectTo(prepared)
    return { client, baseModel: yield* checkModel(client, prepared) }
  }).pipe(Effect.catchTag("TinkerError", (error) => Effect.fail(fromClient("trainer.base_url", error))))
  const serverRuns = yield* makeServerRuns({ client, settings, baseModel })
  const training = Effect.gen(function* () {
    const playing = yield* playingOnServer(prepared, serverRuns, lost)
    const trainerOf = (events: TrainerEvents) => makeServerTrainer({ ...events, serverRuns, shape: settings.trainer })
    yield* work(prepared, state, { playing, trainerOf })
  })
  yield* Effect.raceAllFirst([Effect.provide(training, services), Deferred.await(lost), givingUp(client)])
}, Effect.scoped)
