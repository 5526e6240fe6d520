/** Handles the requests with which clients load and unload adapters. */
import { Effect } from "effect"
import type { StepAdapter } from "../inference/Engine.ts"
import { ApiError, badRequest } from "./ApiError.ts"
import { decoder, LoadAdapterBody, UnloadAdapterBody } from "./requests.ts"
import { json } from "./responses.ts"
import { readBody, type ServerState } from "./ServerState.ts"

/** The adapters that clients may load, replace and unload. */
export interface ClientAdapters {
  /** Reads an adapter from a path that a client sends; undefined if clients cannot load any. */
  readonly read: ((path: string) => Effect.Effect<StepAdapter, { readonly message: string }>) | undefined
  /** Whether clients may also replace and unload adapters that were not loaded by clients. */
  readonly mayReplaceAll: boolean
  /** The names of the adapters that clients have loaded. */
  readonly loaded: Set<string>
}

const adaptersRefused = new ApiError({
  status: 403,
  code: null,
  param: null,
  message: "this server loads no adapters for its clients",
})

/** Returns the step from the name of a folder that ends with `step_N`, like the broadcasts of trainers. */
const stepIn = (path: string): number | undefined => {
  const digits = /(?:^|[\\/])step_(\d+)[\\/]*$/.exec(path)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/** Fails if an adapter was not loaded by a client. */
const checkOwner = Effect.fnUntraced(function* ({ engine }: ServerState, adapters: ClientAdapters, name: string) {
  const models = yield* engine.models
  if (adapters.mayReplaceAll || adapters.loaded.has(name) || models.every((model) => model.name !== name)) return
  const message = `lora_name: "${name}" belongs to the server; its flag --replace-adapters lets clients replace and unload it`
  return yield* new ApiError({ status: 403, code: null, param: "lora_name", message })
})

const decodeLoad = decoder(LoadAdapterBody)
/** Answers `POST /v1/load_lora_adapter`. */
export const loadAdapter = Effect.fnUntraced(function* (state: ServerState, adapters: ClientAdapters) {
  const { engine } = state
  const request = yield* Effect.flatMap(readBody(state), decodeLoad)
  if (adapters.read === undefined) return yield* adaptersRefused
  const { lora_name: name, lora_path: path } = request
  const models = yield* engine.models
  if (models.some((model) => model.base === null && model.name === name)) {
    return yield* badRequest(`lora_name: "${name}" is the base model`, "lora_name")
  }
  yield* checkOwner(state, adapters, name)
  const adapter = yield* Effect.mapError(adapters.read(path), ({ message }) => badRequest(message, "lora_path"))
  const step = request.step ?? stepIn(path) ?? 0
  yield* engine.loadAdapter({ name, step, adapter })
  adapters.loaded.add(name)
  return json({ object: "adapter", id: name, step })
})

const decodeUnload = decoder(UnloadAdapterBody)
/** Answers `POST /v1/unload_lora_adapter`. */
export const unloadAdapter = Effect.fnUntraced(function* (state: ServerState, adapters: ClientAdapters) {
  const { lora_name: name } = yield* Effect.flatMap(readBody(state), decodeUnload)
  if (adapters.read === undefined) return yield* adaptersRefused
  yield* checkOwner(state, adapters, name)
  yield* state.engine.unloadAdapter(name)
  adapters.loaded.delete(name)
  return json({ object: "adapter", id: name, deleted: true })
})
