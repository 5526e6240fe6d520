/** Connects to an MCP server with Effect's client, and converts the server's tools to tools of an agent. */
import { Config, Effect, Record, Redacted, Schema, type Scope } from "effect"
import * as McpClient from "effect/ai/McpClient"
import type { McpClientError } from "effect/ai/McpClientError"
import * as McpProtocol from "effect/ai/McpProtocol"
import type * as McpSchema from "effect/ai/McpSchema"
import * as HttpClient from "effect/http/HttpClient"
import * as ChildProcess from "effect/process/ChildProcess"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { isPlain, type Plain } from "../../../base/config/Config.ts"
import { innermostCause, oneLine } from "../../../base/text/text.ts"
import { commonVariables, environmentOf } from "../../../base/trust/environment.ts"
import { keptAtOrigin } from "../../lm/sameOrigin.ts"
import type { AgentError } from "../AgentError.ts"
import { failure, type McpConfig } from "../Mcp.ts"
import { make as makeTool, type Tool } from "../Tool.ts"

const variable = (name: string) =>
  Effect.orElseSucceed(
    Effect.map(Config.String(name), (value): string | undefined => value),
    () => undefined,
  )

/** Returns the server's name for messages. */
const nameOf = ({ command, args, url }: McpConfig): string =>
  url === null ? [command, ...args].join(" ") : url.replace(/[?#].*$/s, "").replace(/\/\/[^/@]*@/, "//")

const protocols = { "2025-11-25": McpProtocol.v2025_11_25, "2026-07-28": McpProtocol.v2026_07_28 }

/** Starts the program, or prepares the requests to the address. */
const transportOf = Effect.fnUntraced(function* (config: McpConfig, command: string | null) {
  const protocol = protocols[config.protocol]
  if (command === null) {
    const { tokenVariable } = config
    const token = tokenVariable === null ? undefined : yield* variable(tokenVariable)
    if (tokenVariable !== null && (token === undefined || !/^[\x21-\x7e]+$/.test(token))) {
      return yield* failure(`token_variable: the environment variable ${tokenVariable} holds no token`)
    }
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const client = keptAtOrigin(yield* HttpClient.HttpClient)
    return yield* McpClient.http({ url: config.url ?? "", protocol, headers }).pipe(
      Effect.provideService(HttpClient.HttpClient, client),
    )
  }
  const values = new Map<string, string | undefined>()
  for (const name of [...commonVariables, ...config.env]) values.set(name, yield* variable(name))
  const environment = environmentOf(config.env, (name) => values.get(name))
  if ("missing" in environment) return yield* failure(`env: the environment variable ${environment.missing} is not set`)
  const env = Record.map(environment.env, (value) => Redacted.make(value))
  const place = config.cwd === null ? {} : { cwd: config.cwd }
  const process = ChildProcess.make(command, config.args, { env, extendEnv: false, ...place })
  return yield* McpClient.stdio({ command: process, protocol })
})

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  array: Array.isArray,
  object: isPlain,
}

/** Describes a problem of a call's arguments: a key is missing or has another type. The server checks everything else. */
const problemOf = (schema: unknown, given: Plain): string | undefined => {
  if (!isPlain(schema)) return undefined
  const required: ReadonlyArray<unknown> = Array.isArray(schema["required"]) ? schema["required"] : []
  const missing = required.find((key) => typeof key === "string" && !Object.hasOwn(given, key))
  if (missing !== undefined) return `expected a key "${String(missing)}", found none`
  const properties = isPlain(schema["properties"]) ? schema["properties"] : {}
  for (const [key, value] of Object.entries(given)) {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined
    const type = isPlain(property) ? property["type"] : undefined
    if (typeof type === "string" && types[type]?.(value) === false) {
      return `${key}: expected a value of type ${type}, found ${JSON.stringify(value)}`
    }
  }
  return undefined
}

/** Returns the text of a result. Parts that are not text, which the model cannot see, are only named. */
const textOf = ({ content, structuredContent }: McpSchema.CallToolResult): string => {
  const parts = content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`))
  return parts.length === 0 && structuredContent !== undefined ? JSON.stringify(structuredContent) : parts.join("\n")
}

const messageIn = (error: Error): string => {
  const cause = innermostCause(error.cause)
  return oneLine(cause === "" || error.message.includes(cause) ? error.message : `${error.message}: ${cause}`)
}

const Arguments = Schema.Record(Schema.String, Schema.Unknown)

const toolOf = (client: McpClient.McpClient, tool: McpSchema.Tool, { prefix, timeoutS }: McpConfig): Tool => {
  const name = `${prefix}${tool.name}`
  const own = makeTool({
    name,
    description: tool.description ?? tool.title ?? "",
    parameters: Arguments,
    timeout: `${timeoutS} seconds`,
    run: (given): Effect.Effect<string, string> => {
      const problem = problemOf(tool.inputSchema, given)
      if (problem !== undefined) return Effect.fail(`the arguments are invalid: ${problem}`)
      return client.callTool({ tool, arguments: given }).pipe(
        Effect.mapError(messageIn),
        Effect.flatMap((result) =>
          result.isError === true ? Effect.fail(textOf(result)) : Effect.succeed(textOf(result)),
        ),
      )
    },
  })
  // The model gets the server's own description of the parameters.
  return { ...own, spec: { ...own.spec, parameters: isPlain(tool.inputSchema) ? tool.inputSchema : {} } }
}

/**
 * The time limit in seconds for the start of a server. It is long because programs such as `npx` may download the server
 * first.
 */
const slowestStart = 60

/** Hints at what to look at if a program does not answer: `npx`, for example, may need variables to reach its registry. */
const environmentHint =
  "does it run in a terminal? Here it gets few environment variables, so name those that it needs, such as " +
  "HTTPS_PROXY or NODE_EXTRA_CA_CERTS, in env"

/** Connects to a server and returns its tools, by their names. The connection lasts until the scope closes. */
export const connect = Effect.fnUntraced(function* (
  config: McpConfig,
): Effect.fn.Return<ReadonlyArray<Tool>, AgentError, HttpClient.HttpClient | ChildProcessSpawner | Scope.Scope> {
  const { command, url, only } = config
  if ((command === null) === (url === null)) {
    return yield* failure(`expected either command or url, found ${command === null ? "neither" : "both"}`)
  }
  const server = nameOf(config)
  const limit = Math.max(slowestStart, config.timeoutS)
  const hint = command === null ? "" : `; ${environmentHint}`
  const problem = (error: McpClientError): string =>
    error.reason._tag === "TimeoutError" ? `no answer within ${limit} seconds${hint}` : messageIn(error)
  const listed = yield* Effect.gen(function* () {
    const transport = yield* transportOf(config, command)
    const client = yield* McpClient.make({ name: "effect-rl", version: "0.1.0", timeout: limit * 1000 }).pipe(
      Effect.provideService(McpClient.Transport, transport),
    )
    return { client, tools: yield* client.listTools() }
  }).pipe(
    Effect.catchTag("McpClientError", (error) => Effect.fail(failure(`${server} cannot be used: ${problem(error)}`))),
  )
  const { client } = listed
  const all = listed.tools.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const names = all.map(({ name }) => name)
  const unknown = only?.find((name) => !names.includes(name))
  if (unknown !== undefined) {
    return yield* failure(`only: ${server} has no tool "${unknown}"; expected some of ${names.join(", ") || "none"}`)
  }
  const chosen = all.filter(({ name }) => only === null || only.includes(name))
  const odd = chosen.find(({ name }) => !/^[\w-]{1,64}$/.test(`${config.prefix}${name}`))
  if (odd !== undefined) {
    return yield* failure(
      `${server}: models cannot call a tool named "${config.prefix}${odd.name}"; leave it out by only`,
    )
  }
  return chosen.map((tool) => toolOf(client, tool, config))
})
