/** Serves a tiny model by Tinker's protocol while a test runs, with a client that speaks plain HTTP. */
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Exit, Layer, Logger, Redacted, Scope } from "effect"
import * as HttpServer from "effect/http/HttpServer"
import { unzstd } from "../../../src/base/formats/zip/zstd-node.ts"
import { decoderEngine } from "../../../src/decoder/engine/openDecoder.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import { type FileTree, onDisk } from "../../../src/run/store/FileTree.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import { openBaseModel } from "../../../src/trainer/baseModel.ts"
import { makeTinkerServer, type TinkerServerOptions } from "../../../src/trainer/tinker/TinkerServer.ts"
import { makeTrainingPrograms } from "../../../src/trainer/tinker/training/TrainingPrograms.ts"
import { disk } from "../../run/store/disk.ts"

export const rank = 4
const maxLength = 32
export const vocabulary = "abcd"

const usualModel = {
  type: "scratch",
  hiddenSize: 8,
  layers: 1,
  heads: 2,
  maxPositions: maxLength,
  intermediateSize: 8,
  initializerRange: 0.2,
  tokenizer: { alphabet: vocabulary, template: null },
} as const

interface Served {
  readonly model: Parameters<typeof openBaseModel>[0]
  readonly rank: number
  readonly maxLength: number
  /** The number of adapters for which the engine has room. Those of stopped servers stay loaded. */
  readonly adapters: number
}

/** Opens a model and its engine, which all servers of a test file share. */
export const openServed = (scope: Scope.Scope, { model, rank, maxLength, adapters }: Served) =>
  Effect.gen(function* () {
    const base = yield* openBaseModel(model, { baseDir: ".", seed: 1 })
    const shape = { rank, targets: Decoder.projections }
    const engine = yield* decoderEngine(
      { ...base, name: "base" },
      { slots: 4, maxLength, adapters: { slots: adapters, shape } },
    )
    const programs = yield* makeTrainingPrograms({ config: base.decoder, weights: base.weights, shape, maxLength })
    return { base, engine, programs, backend: Context.get(yield* Layer.build(Wasm.layer), Backend) }
  }).pipe(Effect.provide(Wasm.layer), Effect.provide(disk), Scope.provide(scope), Effect.runPromise)

/** Test files of one process share this module, so it opens the model again after a file has closed it. */
let opened: { readonly scope: Scope.Closeable; readonly model: ReturnType<typeof openServed> } | undefined
const shared = (): ReturnType<typeof openServed> => {
  if (opened === undefined) {
    const scope = Effect.runSync(Scope.make())
    opened = { scope, model: openServed(scope, { model: usualModel, rank, maxLength, adapters: 2 }) }
  }
  return opened.model
}

/** Returns the base model of all servers of a test file. */
export const baseOfServers = async () => (await shared()).base

const folders: Array<string> = []

/** Makes a folder for the models of a server, which `closeShared` removes. */
export const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "tinker-"))
  folders.push(folder)
  return folder
}

/** Closes the shared model, and removes the folders. */
export const closeShared = async () => {
  if (opened !== undefined) await Effect.runPromise(Scope.close(opened.scope, Exit.void))
  opened = undefined
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // The tests look into answers of any shape.
  readonly body: ReturnType<typeof JSON.parse>
}

export interface TinkerClient {
  readonly url: string
  readonly logged: ReadonlyArray<string>
  readonly send: (path: string, body: Uint8Array | string, headers: Record<string, string>) => Promise<Response>
  readonly post: (path: string, body: unknown, headers?: Record<string, string>) => Promise<Answer>
  readonly get: (path: string, method?: string) => Promise<Answer>
  /** Sends a request, waits for its outcome, and returns the outcome. */
  readonly done: (path: string, body: unknown) => Promise<Answer["body"]>
  /** Stops the server at once, as a kill would: nothing is saved. */
  readonly stop: () => Promise<void>
}

type Options = Partial<Omit<TinkerServerOptions, "keys">> & { readonly keys?: Record<string, string> }

/** Starts a server whose models are in `folder`. `changed` may replace its file tree. */
export const startTinker = async (
  folder: string,
  { keys = {}, ...options }: Options = {},
  changed: (files: FileTree) => FileTree = (files) => files,
  served: ReturnType<typeof openServed> = shared(),
): Promise<TinkerClient> => {
  const { base, engine, programs, backend } = await served
  const own = Effect.runSync(Scope.make())
  const logged: Array<string> = []
  const server = createServer()
  const starting = Effect.gen(function* () {
    const files = changed(yield* onDisk(folder))
    const { app } = yield* makeTinkerServer({
      base,
      baseName: "base",
      programs,
      engine,
      slots: 2,
      maxRank: rank,
      maxLength,
      files,
      unzstd,
      seed: 0,
      ...options,
      keys: Object.entries(keys).map(([name, key]) => ({ name, key: Redacted.make(key) })),
    })
    const listening = NodeHttpServer.layer(() => server, { host: "127.0.0.1", port: 0 })
    yield* Layer.build(Layer.provide(HttpServer.serve(app), listening))
  })
  await Effect.runPromise(
    starting.pipe(
      Effect.provideService(Backend, backend),
      Effect.provide(Logger.layer([Logger.make(({ message }) => void logged.push(String(message)))])),
      Effect.provide(disk),
      Scope.provide(own),
    ),
  )
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/api/v1`
  const answerOf = async (response: Response): Promise<Answer> => {
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === "" ? null : JSON.parse(text) }
  }
  const send: TinkerClient["send"] = (path, body, headers) =>
    fetch(`${url}${path}`, { method: "POST", headers, body: typeof body === "string" ? body : Buffer.from(body) })
  const post: TinkerClient["post"] = async (path, body, headers = {}) =>
    answerOf(
      await send(path, typeof body === "string" ? body : JSON.stringify(body), {
        "content-type": "application/json",
        ...headers,
      }),
    )
  return {
    url,
    logged,
    send,
    post,
    get: async (path, method = "GET") => answerOf(await fetch(`${url}${path}`, { method, redirect: "manual" })),
    done: async (path, body) => {
      const accepted = await post(path, body)
      if (accepted.status !== 200) throw new Error(JSON.stringify(accepted.body))
      return (await post("/retrieve_future", { request_id: accepted.body.request_id })).body
    },
    stop: () => {
      server.closeAllConnections()
      return Effect.runPromise(Scope.close(own, Exit.void))
    },
  }
}

/** Creates a session and a model. */
export const newModel = async ({ post, done }: TinkerClient, lora: Readonly<Record<string, unknown>> = {}) => {
  const { body } = await post("/create_session", { tags: [], user_metadata: null, sdk_version: "0" })
  const { model_id } = await done("/create_model", {
    session_id: body.session_id,
    model_seq_id: 0,
    base_model: "base",
    lora_config: { rank, seed: 1, ...lora },
  })
  return { session: String(body.session_id), model: String(model_id) }
}

/** An example whose targets are the next tokens. */
export const datum = (tokens: ReadonlyArray<number>, inputs: Readonly<Record<string, ReadonlyArray<number>>> = {}) => ({
  model_input: { chunks: [{ type: "encoded_text", tokens: tokens.slice(0, -1) }] },
  loss_fn_inputs: Object.fromEntries(
    Object.entries({ target_tokens: tokens.slice(1), ...inputs }).map(([name, data]) => [
      name,
      { data, dtype: name === "target_tokens" ? "int64" : "float32", shape: [data.length] },
    ]),
  ),
})

/** The body of a request to compute a loss. */
export const lossBody = (
  model: string,
  seq: number | null,
  data: ReadonlyArray<unknown>,
  loss: string = "cross_entropy",
  config: Readonly<Record<string, number>> | null = null,
) => ({
  model_id: model,
  seq_id: seq,
  forward_backward_input: { data, loss_fn: loss, loss_fn_config: config },
})

export const stepBody = (model: string, seq: number, learningRate = 0.01) => ({
  model_id: model,
  seq_id: seq,
  adam_params: { learning_rate: learningRate, beta1: 0.9, beta2: 0.95, eps: 1e-12 },
})
