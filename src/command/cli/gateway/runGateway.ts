/** Implements `effect gateway`: runs a gateway, or resumes an earlier one, and prints its address and its result. */
import { join, resolve } from "node:path"
import { Effect, Layer, Option, Redacted } from "effect"
import type { Override } from "../../../base/config/Config.ts"
import { exists } from "../../../base/files/files.ts"
import { listen } from "../../../agents/gateway/listen-node.ts"
import { execute, GatewayResult } from "../../../agents/gateway/run/execute.ts"
import { prepare } from "../../../agents/gateway/run/prepare.ts"
import { platform, recorder, runStore } from "../../../node.ts"
import * as Layout from "../../../run/Layout.ts"
import { alertSinks } from "../alerts/flag.ts"
import { ofKind, runToResumeAt } from "../findRun.ts"
import { flagWords, quoted } from "../flags.ts"
import { usageError, writeError, writeJson, writeOut } from "../output/output.ts"
import { readMetrics, runToEnd } from "../run/finished.ts"
import { parseSetting } from "../run/overrides.ts"
import { telemetryLayer } from "../telemetry/telemetry.ts"
import { ConfigsAreOwn } from "../trust/commandTrust.ts"
import { readLocatedYaml } from "../userCode/yamlFile.ts"
import type { GatewayFlags } from "./flags.ts"

/** Runs the gateway that the flags describe. `key` is the key with which agents open sessions, if they need one. */
export const runGateway = Effect.fnUntraced(function* (input: GatewayFlags, key: string | undefined) {
  const resume = yield* folderToResume(input)
  const { config, lines, source } = yield* resume === undefined ? configOf(input) : savedConfig(resume)
  const overrides = yield* overridesOf(input)
  const program = Effect.scoped(
    Effect.gen(function* () {
      const prepared = yield* prepare(config, { source, overrides, lines })
      const { host, port, allowHost } = input
      return yield* execute({
        ...prepared,
        key: key === undefined ? null : Redacted.make(key),
        listen: (app) => listen({ ...app, host, port, allowedHosts: allowHost }),
        onListening: (port) => announce(input, port, key),
      })
    }),
  ).pipe(Effect.provideService(ConfigsAreOwn, resume === undefined))
  const store = { resultsDir: input.resultsDir, ...(resume === undefined ? {} : { resume }) }
  const alerting = yield* alertSinks(input.alert)
  yield* runToEnd(
    (onOpen) =>
      Effect.provide(
        program,
        Layer.mergeAll(platform, recorder(...alerting), runStore({ ...store, onOpen }), telemetryLayer),
      ),
    {
      read: (directory) => readMetrics(directory, GatewayResult),
      finished: (result) => (input.json ? writeJson(result) : writeOut(summary(result))),
      resumeCommand,
      advises: true,
      directory: resume,
    },
  )
})

/** Returns the folder of the gateway that `--resume` names; undefined without that flag. */
const folderToResume = Effect.fnUntraced(function* ({ resume, resultsDir }: GatewayFlags) {
  if (Option.isNone(resume)) return undefined
  if (yield* exists(join(resume.value, Layout.config))) return resume.value
  return yield* runToResumeAt(resume.value, { folders: [resultsDir], usable: ofKind("a gateway", "gateway") })
})

const savedConfig = Effect.fnUntraced(function* (folder: string) {
  const source = join(folder, Layout.config)
  const { value, lines } = yield* readLocatedYaml(source)
  return { config: value, lines, source }
})

/** Returns the section of the model and of its names, from the flags. */
const configOf = Effect.fnUntraced(function* (input: GatewayFlags) {
  if (Option.isNone(input.upstream)) {
    return yield* usageError(
      "--upstream: expected openai, anthropic, the address of a server or the folder of a model, found nothing",
    )
  }
  const upstream = input.upstream.value
  const model = Option.getOrUndefined(input.model)
  const server = yield* serverOf(upstream, input)
  const config = {
    kind: "gateway",
    anyModel: model === undefined && !server.isFolder,
    traceTokens: input.tokens || server.isFolder,
    lmConfig: { model: model ?? server.name, ...server.settings },
  }
  return { config, lines: new Map<string, string>(), source: "effect gateway" }
})

/** Converts the value of `--upstream` to settings of the model. */
const serverOf = Effect.fnUntraced(function* (upstream: string, { protocol, model }: GatewayFlags) {
  if (upstream === "openai" || upstream === "anthropic") {
    return { name: upstream, settings: { protocol: upstream }, isFolder: false }
  }
  if (/^https?:\/\//.test(upstream)) {
    const settings = { baseUrl: upstream, protocol: Option.getOrElse(protocol, () => "openai" as const) }
    return { name: "default", settings, isFolder: false }
  }
  if (!(yield* exists(upstream))) {
    return yield* usageError(
      `--upstream ${upstream}: there is no such folder; expected openai, anthropic, an address that begins with http, or a folder`,
    )
  }
  if (Option.isSome(model)) return yield* usageError("--model does not work with a folder, which has one model")
  return { name: `decoder:${resolve(upstream)}`, settings: {}, isFolder: true }
})

const overridesOf = Effect.fnUntraced(function* (input: GatewayFlags) {
  const flag = (path: string, source: string, value: Option.Option<unknown>): ReadonlyArray<Override> =>
    Option.isNone(value) ? [] : [{ path, source, value: value.value }]
  const aliases = yield* Effect.forEach(input.alias, (word) => {
    const [, name, model] = /^([^=]+)=(.+)$/s.exec(word) ?? []
    return name === undefined
      ? Effect.fail(usageError(`--alias: expected name=model, found "${word}"`))
      : Effect.succeed({ name, model })
  })
  return [
    ...flag("name", "--name", input.name),
    ...flag("lmConfig.cache", "--cache", input.cache),
    ...flag("responses", "--responses", input.responses),
    ...flag("maxSessions", "--max-sessions", input.maxSessions),
    ...flag("maxCalls", "--max-calls", input.maxCalls),
    ...flag("idleSeconds", "--idle-seconds", input.idleSeconds),
    ...(aliases.length === 0 ? [] : [{ path: "aliases", source: "--alias", value: aliases }]),
    ...(yield* Effect.forEach(input.set, parseSetting)),
  ]
})

/** Prints the gateway's address, and how an agent uses it. */
const announce = Effect.fnUntraced(function* ({ host, json }: GatewayFlags, port: number, key: string | undefined) {
  const shown = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host
  const url = `http://${shown}:${port}`
  if (json) return yield* writeJson({ url, key: key ?? null })
  yield* writeOut(`${url}\n`)
  if (key !== undefined) yield* writeError(`key: ${key}\n`)
  yield* writeError(`an agent's base URL: ${url}/sessions/ID/v1, with an ID of its own for each episode\n`)
  yield* writeError("recording; stop with Ctrl-C\n")
})

const summary = (result: GatewayResult): string => {
  const { runDir, steps, episodes, failedCalls, inputTokens, outputTokens, meanReward, rewarded } = result
  const reward = meanReward === null ? "no rewards" : `mean reward ${meanReward.toFixed(3)} over ${rewarded} sessions`
  return [
    `${episodes} sessions, ${steps} calls (${failedCalls} failed), ${inputTokens} + ${outputTokens} tokens`,
    reward,
    runDir,
    "",
  ].join("\n")
}

/** Returns the command that resumes a gateway. */
const resumeCommand = (directory: string): string => {
  const words = flagWords({ resume: directory })
  return `npx effect gateway ${quoted(words)}`
}
