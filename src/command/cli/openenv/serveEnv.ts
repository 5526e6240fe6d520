/** Implements `effect openenv`: finds the env or the data set, serves it, and prints the address. */
import { dirname } from "node:path"
import { Effect, Option } from "effect"
import { servedTasks } from "../../../agents/openenv/ServedTasks.ts"
import * as Datasets from "../../../agents/task/Datasets.ts"
import { choiceHint } from "../../../base/text/closest.ts"
import { type DecodeOptions, toCamelCase } from "../../../base/config/Config.ts"
import { camelCase, isPlain, type Plain, setIn } from "../../../base/config/plain.ts"
import { platform, serveOpenEnv } from "../../../node.ts"
import { servedNumbers } from "../../../rl/env/openenv/ServedNumbers.ts"
import { expandedConfig, fromConfig } from "../../../rl/env/fromConfig.ts"
import { builtIn } from "../../../rl/env/Envs.ts"
import { usageError, writeError, writeJson, writeOut } from "../output/output.ts"
import { parseSetting } from "../run/overrides.ts"
import { ConfigsAreOwn } from "../trust/commandTrust.ts"
import { withConfigs } from "../trust/ownFiles.ts"
import { isConfig, readLocatedYaml } from "../userCode/yamlFile.ts"
import type { OpenEnvFlags } from "./flags.ts"

/** The config of what is served, and where it stands. */
interface Found {
  readonly kind: "env" | "dataset"
  readonly config: unknown
  readonly from: DecodeOptions
  readonly baseDir: string
}

/** The sections of a file that can be served, in the order in which they are looked for. */
const sections = ["env", "dataset", "train_dataset", "validation_dataset"] as const

const inFile = Effect.fnUntraced(function* (file: string) {
  const { value, lines } = yield* readLocatedYaml(file)
  const common = { baseDir: dirname(file) }
  if (!isPlain(value)) return yield* usageError(`${file}: expected an env or a data set`)
  const section = sections.find((key) => value[key] !== undefined)
  const prefix = section === undefined ? [] : [camelCase(section)]
  const from: DecodeOptions = { source: file, sources: lines, prefix }
  const config = section === undefined ? value : value[section]
  const kind = section === "env" || (section === undefined && value["name"] !== undefined) ? "env" : "dataset"
  return { ...common, kind, config, from } satisfies Found
})

const typed = Effect.fnUntraced(function* (name: string) {
  const common = { from: { source: "effect openenv" }, baseDir: "." }
  const types = (yield* Datasets.Kinds).map(({ type }) => type)
  if (types.includes(name)) return { ...common, kind: "dataset", config: { type: name } } satisfies Found
  const expanded = expandedConfig(name)
  const ids = builtIn.map(({ id }) => id)
  if (ids.includes(name) || isPlain(expanded)) return { ...common, kind: "env", config: expanded } satisfies Found
  const hint = choiceHint(name, [...ids, ...types])
  return yield* usageError(`${name}: there is no such env, kind of data set or YAML file; ${hint}`)
})

const withSettings = Effect.fnUntraced(function* (config: unknown, settings: ReadonlyArray<string>) {
  if (settings.length === 0) return config
  const own: unknown = toCamelCase(typeof config === "string" ? { name: config } : config)
  let result: Plain = isPlain(own) ? own : {}
  for (const setting of settings) {
    const { path, value } = yield* parseSetting(setting)
    const keys = toCamelCase(Object.fromEntries([[path, null]]))
    result = setIn(result, Object.keys(isPlain(keys) ? keys : {}), value)
  }
  return result
})

/** Returns an object with the value of a flag; without it, an empty object. */
const given = <Key extends string>(key: Key, value: Option.Option<number>): Partial<Record<Key, number>> => {
  const flag: Partial<Record<Key, number>> = {}
  if (Option.isSome(value)) flag[key] = value.value
  return flag
}

/** Serves until it is interrupted. `key` is the key that clients must have, if they need one. */
export const serveEnv = Effect.fnUntraced(function* (input: OpenEnvFlags, key: string | undefined) {
  const { kind, config: own, from, baseDir } = yield* isConfig(input.env) ? inFile(input.env) : typed(input.env)
  const config = yield* withSettings(own, input.set)
  const served = yield* (
    kind === "env"
      ? Effect.flatMap(fromConfig(toCamelCase(config), from), servedNumbers)
      : Effect.flatMap(Datasets.open(config, { baseDir, from }), ({ tasks }) => servedTasks(tasks))
  ).pipe(isConfig(input.env) ? withConfigs(input.env) : Effect.provideService(ConfigsAreOwn, true))
  const { host, port, allowHost: allowedHosts } = input
  const at = yield* serveOpenEnv(served, {
    host,
    port,
    allowedHosts,
    key,
    ...given("most", input.sessions),
    ...given("idleSeconds", input.idleSeconds),
    ...given("seed", input.seed),
  })
  yield* announce(input, at, key)
  return yield* Effect.never
}, Effect.provide(platform))

const announce = Effect.fnUntraced(function* ({ host, json }: OpenEnvFlags, port: number, key: string | undefined) {
  const shown = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host
  const url = `http://${shown}:${port}`
  // Clients of the reference cannot send a header with a WebSocket, but they keep the path of the address.
  const clientUrl = key === undefined ? url : `${url}/${key}`
  if (json) return yield* writeJson({ url: clientUrl })
  yield* writeOut(`${clientUrl}\n`)
  yield* writeError("serving; stop with Ctrl-C\n")
})
