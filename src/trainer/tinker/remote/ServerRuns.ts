/** Keeps the models of a trainer's runs on a server: creates, saves, loads and unloads them. */
import { Effect, Exit, Schema, Scope } from "effect"
import { isOfAttention } from "../models/AdapterInTraining.ts"
import { jsonText } from "../../../base/text/jsonText.ts"
import { prettyJson } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import type { MultiRunConfig } from "../../config/MultiRunConfig.ts"
import * as Layout from "../../Layout.ts"
import type { RunSlot } from "../../runs/RunSlot.ts"
import type { RunWeights } from "../../trainer/trainedRuns.ts"
import { TrainerError } from "../../TrainerError.ts"
import type { TinkerClient, TinkerModel, TinkerSampler } from "../client/TinkerClient.ts"
import { isOutage, type TinkerError } from "../client/TinkerError.ts"
import { metadataKey } from "../wire/requests.ts"

/** The content of a checkpoint's file `tinker.json`. */
const SavedOnServer = Schema.Struct({
  /** The address of the server, for people: a server may move. */
  server: Schema.String,
  baseModel: Schema.String,
  model: Schema.String,
  /** The address of the weights and the optimiser on the server. */
  path: Schema.String,
})
const decodeSaved = Schema.decodeUnknownEffect(jsonText(SavedOnServer))

/** A run's model on the server. */
interface ServerRun {
  readonly model: TinkerModel
  readonly scope: Scope.Closeable
  /** The newest published weights; undefined before the first ones. */
  sampler: TinkerSampler | undefined
  /** The step of the published weights. */
  step: number
}

export interface ServerRuns {
  readonly weights: RunWeights
  readonly find: (id: string) => ServerRun | undefined
  /** Returns the model of a run that is trained. */
  readonly modelOf: (run: Pick<RunSlot, "id">) => Effect.Effect<TinkerModel, TrainerError>
  /** Makes the current weights of a run available for sampling. */
  readonly publish: (run: RunSlot) => Effect.Effect<void, TrainerError>
}

/**
 * Converts an error of the client. If no request can succeed now, the error counts as a fault of the machine: the trainer then
 * ends, and can be resumed, and no run is evicted.
 */
export const fromClient = (place: string, error: TinkerError): TrainerError =>
  new TrainerError({
    message: `${place}: ${error.message}`,
    ...(isOutage(error) || error.reason === "failed" ? { code: "ETIMEDOUT" } : {}),
  })

interface ServerRunsOptions {
  readonly client: TinkerClient["Service"]
  readonly settings: Pick<MultiRunConfig, "trainer" | "seed">
  readonly baseModel: string
}

const missing = (run: Pick<RunSlot, "id">, { server, path }: typeof SavedOnServer.Type, { message }: TinkerError) =>
  TrainerError.at(
    `${run.id}/${Layout.checkpoints}`,
    `the server no longer has ${path}, which ${server} had saved (${message}); set resume_step to the step of another checkpoint, or to 0 to begin again`,
  )

const readSaved = (run: Pick<RunSlot, "id">, files: Readonly<Record<string, Uint8Array>>) => {
  const file = Layout.inCheckpoint.tinker
  const place = `${run.id}/${Layout.checkpoints}: ${file}`
  const bytes = files[file]
  if (bytes === undefined)
    return Effect.fail(TrainerError.at(place, "the file is missing; expected a checkpoint of trainer.type: tinker"))
  return Effect.mapError(decodeSaved(utf8.decode(bytes)), ({ message }) => TrainerError.at(place, message))
}

/** Makes the models of the runs, which live until the scope closes. */
export const makeServerRuns = Effect.fnUntraced(function* ({
  client,
  settings: { trainer, seed },
  baseModel,
}: ServerRunsOptions): Effect.fn.Return<ServerRuns, never, Scope.Scope> {
  const outer = yield* Effect.scope
  const all = new Map<string, ServerRun>()
  const targets = trainer.lora?.targets ?? []

  const create = ({ id, config }: RunSlot) =>
    client.createModel({
      baseModel,
      rank: config.lora.rank ?? trainer.lora?.rank ?? 1,
      seed,
      trainsAttention: targets.some(isOfAttention),
      trainsMlp: targets.some((target) => !isOfAttention(target)),
      metadata: { [metadataKey]: id },
    })

  /** Unloads the model that an earlier process has left on the server. */
  const unloadEarlier = Effect.fnUntraced(function* ({ own: { folder } }: RunSlot) {
    const text = yield* Effect.option(folder.tree.readText(Layout.tinkerModel))
    if (text._tag === "Some") yield* Effect.ignore(client.unload(text.value.trim()))
  })

  const begin: RunWeights["begin"] = Effect.fnUntraced(function* (run, files) {
    const saved = files === undefined ? undefined : yield* readSaved(run, files)
    yield* unloadEarlier(run)
    const scope = yield* Scope.fork(outer)
    const opening = Effect.gen(function* () {
      const model = yield* Scope.provide(create(run), scope)
      const { tree, guarded } = run.own.folder
      yield* guarded(tree.write(Layout.tinkerModel, `${model.id}\n`))
      if (saved !== undefined)
        yield* Effect.catch(model.loadWeights(saved.path), (error) =>
          Effect.fail(isOutage(error) ? fromClient(run.id, error) : missing(run, saved, error)),
        )
      return model
    }).pipe(Effect.catchTag("TinkerError", (error) => Effect.fail(fromClient(run.id, error))))
    const model = yield* Effect.onError(opening, () => Scope.close(scope, Exit.void))
    all.set(run.id, { model, scope, sampler: undefined, step: -1 })
    return undefined
  })

  const get = ({ id }: Pick<RunSlot, "id">) => {
    const found = all.get(id)
    return found === undefined
      ? Effect.fail(TrainerError.at(id, "it has no model on the server"))
      : Effect.succeed(found)
  }

  return {
    find: (id) => all.get(id),
    modelOf: (run) => Effect.map(get(run), ({ model }) => model),
    publish: Effect.fnUntraced(function* (run) {
      const entry = yield* get(run)
      entry.sampler = yield* Effect.mapError(entry.model.sampler, (error) => fromClient(run.id, error))
      entry.step = run.progress.step
    }),
    weights: {
      begin,
      files: Effect.fnUntraced(function* (run) {
        const { model } = yield* get(run)
        const saving = model.saveWeights(Layout.stepName(run.progress.step))
        const path = yield* Effect.mapError(saving, (error) => fromClient(run.id, error))
        const saved: typeof SavedOnServer.Type = { server: client.address, baseModel, model: model.id, path }
        return { [Layout.inCheckpoint.tinker]: utf8.encode(prettyJson(saved)) }
      }),
      end: ({ id }) =>
        Effect.suspend(() => {
          const entry = all.get(id)
          all.delete(id)
          return entry === undefined ? Effect.void : Scope.close(entry.scope, Exit.void)
        }),
    },
  }
})
