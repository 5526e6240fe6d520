/**
 * Makes the service `Decoders`, which opens language models in this process for configs with `model: decoder:FOLDER`. The
 * folder may be a model, an adapter, a broadcast, a checkpoint, or a run of a trainer, whose newest weights are then used.
 *
 * @example
 * ```ts
 * const models = makeDecoders(Effect.map(Layer.build(Wasm.layer), Context.get(Backend)))
 * const lm = Lms.layer(LmConfig.make({ model: "decoder:models/small" })).pipe(
 *   Layer.provide(Layer.effect(Decoders, models)),
 * )
 * ```
 */
import { Effect, type FileSystem, Option, type Path, type Scope, Semaphore } from "effect"
import { Backend } from "../../tensor/backend/Backend.ts"
import { decoderEngine } from "../../decoder/engine/openDecoder.ts"
import type { DecodersService } from "../../agents/lm/Decoders.ts"
import * as EngineLm from "../../decoder/engine/EngineLm.ts"
import type { Provider } from "../../agents/lm/providers/Provider.ts"
import { needsMerging } from "../../decoder/huggingFace/Adapter.ts"
import { findModel, mergedModel, type ModelPlace, openModel } from "./SavedModel.ts"

/**
 * Makes the service. A model computes on the backend in the context of the program that opens it. Without such a backend,
 * `otherwise` makes one for the first model, and all later ones share it. The models stay open until the scope closes.
 */
export const makeDecoders = Effect.fnUntraced(function* (
  otherwise: Effect.Effect<Backend["Service"], { readonly message: string }, Scope.Scope>,
): Effect.fn.Return<DecodersService, never, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path | Scope.Scope>()
  const fallback = yield* Effect.cached(otherwise)
  /** The opened models by the folders of their weights. */
  const opened = new Map<string, Provider>()
  const one = yield* Semaphore.make(1)
  const find = Effect.fnUntraced(function* (folder: string) {
    const place = yield* findModel(folder)
    const before = opened.get(place.folder)
    if (before !== undefined) return before
    const backend = Option.getOrUndefined(yield* Effect.serviceOption(Backend)) ?? (yield* fallback)
    const provider = yield* Effect.provideService(providerOf(place), Backend, backend)
    opened.set(place.folder, provider)
    return provider
  })
  return { open: (folder) => find(folder).pipe(one.withPermits(1), Effect.provideContext(context)) }
})

/** Opens a model, and makes the provider that asks it. */
const providerOf = Effect.fnUntraced(function* (place: ModelPlace) {
  const { name } = place
  const model = yield* openModel(place)
  const { base, adapter } = model
  if (adapter === null || needsMerging(adapter)) {
    const engine = yield* decoderEngine({ ...mergedModel(model), name })
    return EngineLm.make({ engine, chat: base.chat, model: name })
  }
  const { rank, targets } = adapter
  const engine = yield* decoderEngine(
    { ...base, name: `${name} without its adapter` },
    { adapters: { slots: 1, shape: { rank, targets } } },
  )
  yield* engine.loadAdapter({ name, step: place.step ?? 0, adapter })
  return EngineLm.make({ engine, chat: base.chat, model: name })
})
