/** Answers Tinker's protocol besides OpenAI's, for `effect serve --tinker`. */
import { hostname } from "node:os"
import { join, resolve } from "node:path"
import { Effect, Option, Redacted, Schema } from "effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import { makeFolder, mostBytes, readText } from "../../../base/files/files.ts"
import { visible } from "../../../base/text/text.ts"
import { readYamlText } from "../../../base/config/yaml.ts"
import { unzstd } from "../../../base/formats/zip/zstd-node.ts"
import type { OpenedDecoder } from "../../../decoder/engine/openDecoder.ts"
import type { ListenOptions } from "../../../decoder/serve/server-node.ts"
import * as LmDirectory from "../../../decoder/huggingFace/LmDirectory.ts"
import { foreignLinkIn } from "../../../run/store/links.ts"
import { holdLock } from "../../../run/store/lock.ts"
import { owner } from "../../../run/store/owner-node.ts"
import { onDisk } from "../../../run/store/FileTree.ts"
import { makeTinkerServer } from "../../../trainer/tinker/TinkerServer.ts"
import { startTrainingThread } from "../../../trainer/tinker/training/thread-node.ts"
import { defaultResultsDir, sessionOptions } from "../flags.ts"
import { usageError } from "../output/output.ts"
import type { ServeFlags } from "./flags.ts"

interface TinkerModel {
  readonly model: OpenedDecoder
  /** The folder of the base model. */
  readonly folder: string
  /** The number of adapters for which the engine has room, and their largest rank. */
  readonly slots: number
  readonly maxRank: number
  readonly apiKey: Redacted.Redacted | undefined
}

/** The default of `--max-adapters` if there are adapters. */
export const usualAdapters = 8

/** The default of the largest rank of an adapter, which is also that of Tinker's clients. */
export const tinkerRank = 32

/** Fails if flags of `--tinker` were typed without it, without room for adapters, or with a key that its clients refuse to send. */
export const checkTinker = Effect.fnUntraced(function* (input: ServeFlags, apiKey: string | undefined) {
  const { tinker, tinkerDir, tinkerKeys, seed } = input
  if (!tinker) {
    if (Option.isSome(tinkerDir)) return yield* usageError("--tinker-dir only works with --tinker")
    if (Option.isSome(tinkerKeys)) return yield* usageError("--tinker-keys only works with --tinker")
    if (Option.isSome(seed)) return yield* usageError("--seed only works with --tinker")
    return
  }
  if (Option.isSome(input.quantization))
    return yield* usageError("--quantization does not work with --tinker, which trains with 32-bit floats")
  const others = input.adapter.length + input.watch.length
  const most = Option.getOrElse(input.maxAdapters, () => usualAdapters)
  if (most <= others)
    return yield* usageError(
      `--max-adapters: expected at least ${others + 1} with --tinker, one for each --adapter and --watch and one for clients; found ${most}`,
    )
  if (apiKey !== undefined && !apiKey.startsWith("tml-"))
    return yield* usageError("--api-key: expected a key that begins with tml-, because Tinker's clients send no other")
})

/** The names of clients and their keys, as a file holds them. */
const KeysOfClients = Schema.Record(Schema.String, Schema.String)

/** Reads the keys of clients. Messages name the client, never the key. */
const readKeys = Effect.fnUntraced(function* (file: string) {
  const refuse = (problem: string) => usageError(`--tinker-keys: ${file}: ${problem}`)
  const text = yield* Effect.mapError(readText(file, mostBytes.config), ({ message }) => refuse(message))
  const { value } = yield* Effect.mapError(readYamlText(text, file), () => refuse("expected YAML"))
  const form = "expected a line for each client, such as alice: tml-0123456789abcdef"
  const clients = yield* Effect.mapError(Schema.decodeUnknownEffect(KeysOfClients)(value), () => refuse(form))
  const entries = Object.entries(clients)
  if (entries.length === 0) return yield* refuse(form)
  for (const [name, key] of entries) {
    if (!/^tml-.{16,}$/.test(key))
      return yield* refuse(`${name}: expected a key that begins with tml- and has at least 16 more characters`)
    if (entries.some(([other, same]) => other !== name && same === key))
      return yield* refuse(`${name}: expected a key that no other client has`)
  }
  return entries.map(([name, key]) => ({ name, key: Redacted.make(key) }))
})

/** Returns the keys of the server's clients; none if any client may use it. */
const keysOf = (input: ServeFlags, apiKey: Redacted.Redacted | undefined) =>
  Option.match(input.tinkerKeys, {
    onSome: readKeys,
    onNone: () => Effect.succeed(apiKey === undefined ? [] : [{ name: "main", key: apiKey }]),
  })

/** Returns the variables of the environment with which Tinker's clients find the server. */
export const tinkerVariables = (
  { tinkerKeys }: ServeFlags,
  { origin, apiKey }: { readonly origin: string; readonly apiKey: string | undefined },
): string => {
  const key = Option.isSome(tinkerKeys) ? "KEY" : (apiKey ?? "tml-local")
  return `TINKER_BASE_URL=${origin} TINKER_API_KEY=${key}`
}

/**
 * Opens the folder of the models, which only this process writes from now on. It is searched for links once: to look for them at
 * each operation would take a fifth of the server's time.
 */
const openFolder = Effect.fnUntraced(function* (directory: string) {
  yield* makeFolder(directory)
  yield* holdLock(join(directory, "server.lock"), owner)
  const link = yield* Effect.catch(foreignLinkIn(directory), ({ message }) => usageError(`--tinker-dir: ${message}`))
  if (link === undefined) return yield* onDisk(directory, { followsLinks: true })
  const problem = `${visible(link)} is a link, through which files elsewhere could be read or changed`
  return yield* usageError(`--tinker-dir: ${problem}; remove it, or replace it by a copy of what it points to`)
})

/**
 * Makes the function that adds Tinker's protocol to the server. Also returns the Effect that fails if the thread that trains has
 * ended: then the server must end, too, so that it is started again and performs what it has accepted.
 */
export const withTinker = Effect.fnUntraced(function* (input: ServeFlags, tinker: TinkerModel) {
  const { model, folder, slots, maxRank, apiKey } = tinker
  const directory = resolve(Option.getOrElse(input.tinkerDir, () => join(defaultResultsDir, "tinker")))
  const files = yield* openFolder(directory)
  const [{ maxLength }] = yield* model.engine.models
  const seed = Option.getOrElse(input.seed, () => 0)
  const { decoder } = yield* LmDirectory.open(yield* onDisk(".", { followsLinks: true }), folder)
  const rank = Math.min(maxRank, decoder.hiddenSize)
  const { threads } = yield* sessionOptions(input)
  const task = { folder, maxRank: rank, maxLength, backend: input.backend, threads }
  const { programs, untilLost } = yield* startTrainingThread(task)
  const { app } = yield* makeTinkerServer({
    base: { decoder, name: resolve(folder) },
    baseName: model.name,
    programs,
    engine: model.engine,
    slots,
    maxRank: rank,
    maxLength,
    files,
    unzstd,
    seed,
    keys: yield* keysOf(input, apiKey),
    guard: { host: input.host, machine: hostname(), allowed: input.allowHost },
  })
  const extended: NonNullable<ListenOptions["extended"]> = (other) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) => (url.startsWith("/api/v1/") ? app : other))
  return { extended, untilLost }
})
