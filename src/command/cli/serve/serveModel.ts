/** Opens the model of `effect serve`, loads its adapters, and serves it until Ctrl-C. */
import { totalmem } from "node:os"
import { resolve } from "node:path"
import { Effect, Option, Redacted } from "effect"
import { exists } from "../../../base/files/files.ts"
import { visible } from "../../../base/text/text.ts"
import { modelFiles } from "../../../base/formats/modelFiles.ts"
import { inRecord } from "../../../base/formats/Weights.ts"
import { Engine } from "../../../decoder/inference/Engine.ts"
import { openDecoder, type OpenedDecoder } from "../../../decoder/engine/openDecoder.ts"
import { type TrainerFolder, trainerAt } from "../../../trainer/trainerFolder.ts"
import { type FileTree, onDisk } from "../../../run/store/FileTree.ts"
import { type BroadcastWeights, type Followed, follow } from "../../../trainer/weights/followBroadcasts.ts"
import * as HuggingFaceAdapter from "../../../decoder/huggingFace/Adapter.ts"
import * as LmDirectory from "../../../decoder/huggingFace/LmDirectory.ts"
import { adaptersIn } from "../../../decoder/serve/allowed-adapters-node.ts"
import { serve } from "../../../decoder/serve/server-node.ts"
import { ofKind, runFolder } from "../findRun.ts"
import { defaultResultsDir, quoted } from "../flags.ts"
import { warningLabel } from "../output/colors.ts"
import { usageError, writeError, writeJson, writeOut } from "../output/output.ts"
import { checkSizes } from "./checkSizes.ts"
import { exampleRequest } from "./exampleRequest.ts"
import { modelToServe } from "./modelToServe.ts"
import type { ServeFlags } from "./flags.ts"
import { checkTinker, tinkerRank, tinkerVariables, usualAdapters, withTinker } from "./tinker.ts"
import { openTrained, trainedModel } from "./trainedModel.ts"

export const serveModel = Effect.fnUntraced(function* (input: ServeFlags, apiKey: string | undefined) {
  const adapters = yield* Effect.forEach(input.adapter, adapterFlag)
  yield* checkTinker(input, apiKey)
  for (const [flag, folders] of [
    ["watch", input.watch],
    ["adapters", input.adapters],
  ] as const) {
    for (const one of folders) {
      if (!(yield* exists(one))) return yield* usageError(`--${flag}: there is no folder ${one}`)
    }
  }
  const files = yield* onDisk(".", { followsLinks: true })
  const { model, watch, maxAdapters, trainer, folder } = yield* openModel(input, files)
  const report = reporter(input.verbose)
  const watched = [...new Set([...watch, ...input.watch].map((one) => resolve(one)))]
  for (const { name, path } of adapters) {
    const adapter = yield* model.readAdapter(files, path)
    yield* model.engine.loadAdapter({ name, step: 0, adapter })
  }
  // The newest weights are loaded before the first request, so that no answer comes from older ones.
  for (const directory of watched) {
    const following = yield* Effect.provideService(
      follow({ directory, decode: decoder(model), report }),
      Engine,
      model.engine,
    )
    yield* Effect.forkScoped(following)
  }
  const allowed = [...input.adapters, ...watched, ...adapters.map(({ path }) => path), ...(yield* servedFolder(input))]
  const key = apiKey === undefined ? undefined : Redacted.make(apiKey)
  const slots = maxAdapters - adapters.length - watched.length
  const tinker = input.tinker
    ? yield* withTinker(input, { model, folder, slots, maxRank: rankOf(input), apiKey: key })
    : undefined
  const { port } = yield* serve({
    extended: tinker?.extended,
    chat: model.chat,
    host: input.host,
    port: input.port,
    allowedHosts: input.allowHost,
    pooling: input.pooling,
    maxRequests: Option.getOrUndefined(input.maxRequests),
    apiKey: key,
    replaceAdapters: input.replaceAdapters,
    ...(maxAdapters === 0 ? {} : { readAdapter: adaptersIn(allowed, (path) => model.readAdapter(files, path)) }),
  }).pipe(Effect.provideService(Engine, model.engine))
  yield* announce(input, model, { port, apiKey, trainer })
  return yield* Effect.onInterrupt(tinker?.untilLost ?? Effect.never, () =>
    writeError("finishing the answers that have begun\n"),
  )
})

/** Returns the named folder, from which clients may load adapters; nothing if the user named the model otherwise. */
const servedFolder = ({ model }: ServeFlags) => Effect.map(exists(model), (isFolder) => (isFolder ? [model] : []))

/**
 * Opens the model that the user named. Also returns the folders in which newer weights of the model appear, and the number of
 * adapters that fit.
 */
const openModel = Effect.fnUntraced(function* (input: ServeFlags, files: FileTree) {
  const named = input.model === "latest" ? yield* newestTrainer : input.model
  const trainer = yield* trainerAt(named)
  if (trainer !== undefined) {
    if (Option.isSome(input.merge)) return yield* usageError(`--merge: expected a folder with a model, ${unmergeable}`)
    if (input.tinker)
      return yield* usageError("--tinker: expected a folder with a model, found a trainer; export a run")
    return { ...(yield* openTrained(yield* trainedModel(trainer, named), input)), trainer, folder: "" }
  }
  const { folder, name, watch } = yield* modelToServe(named)
  const directory = yield* LmDirectory.open(files, folder)
  yield* checkSizes(input, directory.decoder)
  if (Option.isSome(input.merge) && (input.tinker || input.watch.length + watch.length > 0))
    return yield* usageError(`--merge: expected neither --tinker nor broadcasts of a run, ${unmergeable}`)
  const merged = yield* Effect.forEach(Option.toArray(input.merge), (path) =>
    HuggingFaceAdapter.load(files, path, directory.decoder, { merging: true }),
  )
  const typed = input.adapter.length + input.adapters.length + input.watch.length + watch.length
  const hasAdapters = input.tinker || typed > 0
  const maxAdapters = Math.max(
    Option.getOrElse(input.maxAdapters, () => (hasAdapters ? usualAdapters : 0)),
    input.adapter.length,
  )
  const model = yield* openDecoder(directory, {
    name: Option.getOrElse(input.name, () => name),
    maxAdapters,
    embeddings: true,
    routedExperts: input.routedExperts,
    toolFormat: input.toolFormat,
    maxLength: Option.getOrUndefined(input.maxModelLen),
    slots: Option.getOrUndefined(input.slots),
    pageSize: Option.getOrUndefined(input.pageSize),
    maxRank: input.tinker
      ? Math.min(rankOf(input), directory.decoder.hiddenSize)
      : Option.getOrUndefined(input.maxLoraRank),
    mostBytes: totalmem(),
    merged: merged[0],
    quantization: Option.getOrUndefined(input.quantization),
  })
  return { model, watch, maxAdapters, trainer, folder }
})

const unmergeable =
  "because a trainer's weights are those without it; export the merged model: effect export ADAPTER --to model"

/** The largest rank of an adapter with `--tinker`. */
const rankOf = ({ maxLoraRank }: ServeFlags): number => Option.getOrElse(maxLoraRank, () => tinkerRank)

/** Finds the newest trainer of language models in `results`, and prints its path. */
const newestTrainer = runFolder("latest", {
  folders: [defaultResultsDir],
  usable: ofKind("a trainer of language models", "multirun"),
})

/** Parses the value of `--adapter`. */
const adapterFlag = Effect.fnUntraced(function* (word: string) {
  const [, name, path] = /^([^=]+)=(.+)$/s.exec(word) ?? []
  return name === undefined ? yield* usageError(`--adapter: expected name=path, found "${word}"`) : { name, path }
})

/** Makes the function that decodes the files of a broadcast, which are an adapter or all weights of the model. */
const decoder =
  (model: OpenedDecoder) =>
  (files: Readonly<Record<string, Uint8Array>>): Effect.Effect<BroadcastWeights, { readonly message: string }> => {
    const folder = inRecord(files)
    return Object.hasOwn(files, modelFiles.adapterConfig)
      ? Effect.map(model.readAdapter(folder, "."), (adapter) => ({ _tag: "Adapter", adapter }))
      : Effect.map(model.readWeights(folder, "."), (weights) => ({ _tag: "Full", weights }))
  }

/**
 * Makes the function that prints what happened to each broadcast. Of loaded broadcasts, it prints only the first of each run.
 */
const reporter = (isVerbose: boolean) => {
  const loaded = new Set<string>()
  return (followed: Followed): Effect.Effect<void> => {
    const run = visible(followed.run)
    switch (followed._tag) {
      case "Loaded": {
        const isFirst = !loaded.has(run)
        loaded.add(run)
        if (isVerbose) return writeError(`${run}: loaded step ${followed.step}\n`)
        return isFirst ? writeError(`${run}: loaded step ${followed.step}, then each newer one\n`) : Effect.void
      }
      case "Failed":
        return writeError(
          `${warningLabel()} ${run}: step ${followed.step} was not loaded: ${visible(followed.message)}\n`,
        )
      case "Unreadable":
        return writeError(`${warningLabel()} ${run}: its broadcasts cannot be read: ${visible(followed.message)}\n`)
      case "Gone":
        loaded.delete(run)
        return writeError(`${run}: the run is gone\n`)
    }
  }
}

interface ServerAddress {
  readonly port: number
  readonly apiKey: string | undefined
  /** The trainer whose runs are served, if any. */
  readonly trainer: TrainerFolder | undefined
}

/** Prints the server's address, and an example of a command that sends a request. */
const announce = Effect.fnUntraced(function* (input: ServeFlags, model: OpenedDecoder, address: ServerAddress) {
  const { host, json, tinker } = input
  const { port, apiKey, trainer } = address
  const shown = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host
  const origin = `http://${shown}:${port}`
  const url = `${origin}/v1`
  const models = yield* model.engine.models
  const names = models.map(({ name }) => name)
  if (json) {
    const { maxLength } = models[0]
    return yield* writeJson({ url, model: model.name, models: names, maxModelLen: maxLength, apiKey: apiKey ?? null })
  }
  yield* writeOut(`${url}\n`)
  // The example asks for a short answer, unless the model's context is so small that it may not have room for these tokens.
  const few = models[0].maxLength > 256 ? { max_tokens: 32 } : {}
  const greeting = { model: model.name, messages: [{ role: "user", content: "Hello" }], ...few }
  const request = trainer === undefined ? undefined : yield* exampleRequest(trainer, names)
  const body = JSON.stringify(request ?? greeting)
  const key = apiKey === undefined ? [] : ["-H", `authorization: Bearer ${apiKey}`]
  const example = ["curl", `${url}/chat/completions`, "-H", "content-type: application/json", ...key, "-d", body]
  if (apiKey !== undefined) yield* writeError(`API key: ${apiKey}\n`)
  yield* writeError(`${quoted(example)}\n`)
  if (tinker) yield* writeError(`for Tinker's clients: ${tinkerVariables(input, { origin, apiKey })}\n`)
  yield* writeError(`serving ${names.join(", ")}; stop with Ctrl-C\n`)
})
