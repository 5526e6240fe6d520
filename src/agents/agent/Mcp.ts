/**
 * Lets agents use the tools of servers with the Model Context Protocol (MCP): programs that are started on this machine and
 * read calls from stdin, or servers at an address. The tools are listed when an agent is made. As for all tools, if a call
 * fails or takes too long, the model sees the error as the result.
 *
 * @example
 * ```ts
 * const tools = yield* Mcp.tools({ command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "."] })
 * const agent = yield* ToolAgent.make({ model: "gpt-4.1-mini", tools, maxCalls: 5 })
 * ```
 */
import { Context, Effect, Schema } from "effect"
import { ConfigError, type ConfigOrigin, placeOf } from "../../base/config/Config.ts"
import { positiveBelow, withDefault } from "../../base/config/fields.ts"
import { permit, type TrustRequest } from "../../base/trust/Trust.ts"
import { AgentError } from "./AgentError.ts"
import type { Tool } from "./Tool.ts"

const optionalText = withDefault(Schema.NullOr(Schema.String), null)

/** The Schema of a server. It has either a `command` or a `url`. */
export const McpConfig = Schema.Struct({
  /** The program to start, which reads calls from stdin and writes results to stdout. */
  command: optionalText,
  /** The arguments of the program. */
  args: withDefault(Schema.Array(Schema.String), []),
  /**
   * The names of the environment variables that the program gets, besides `PATH`, `HOME` and a few others without secrets.
   */
  env: withDefault(Schema.Array(Schema.String), []),
  /** The folder in which the program starts; null is the current one. */
  cwd: optionalText,
  /** The address of a server, which must use the protocol's streamable HTTP. */
  url: optionalText,
  /** The name of the environment variable with the bearer token for the address. */
  tokenVariable: optionalText,
  /** The version of the protocol that the server must support. */
  protocol: withDefault(Schema.Literals(["2025-11-25", "2026-07-28"]), "2025-11-25"),
  /** The names of the tools to use; null uses all of them. */
  only: withDefault(Schema.NullOr(Schema.Array(Schema.String)), null),
  /** A prefix of the tools' names, to distinguish tools of several servers with the same name. */
  prefix: withDefault(Schema.String, ""),
  /** The time limit in seconds of each call. Starting the server may take a minute, or this time if it is longer. */
  timeoutS: withDefault(positiveBelow("seconds"), 30),
})
export type McpConfig = typeof McpConfig.Type

/** A server as it is described in code. Settings that are left out have their defaults. */
export type McpOptions = Partial<McpConfig>

/** The Schema of an entry of an agent's `tools`. */
export const ToolSource = Schema.Struct({
  /** The server that has the tools. */
  mcp: McpConfig,
})

export interface McpServersService {
  /** Returns the tools of a server. The server is started for the first agent that asks for it, and shared by all. */
  readonly tools: (config: McpConfig) => Effect.Effect<ReadonlyArray<Tool>, AgentError>
}

export const failure = (message: string): AgentError => new AgentError({ agent: "mcp", message: `mcp: ${message}` })

/** The MCP servers of a program. `effect-rl/node` provides them in `platform`, and ends them with the program. */
export const McpServers = Context.Reference<McpServersService>("effect-rl/agent/McpServers", {
  defaultValue: () => ({
    tools: () =>
      Effect.fail(failure("servers need a place to run; provide `platform` or `mcpServers` of effect-rl/node")),
  }),
})

const decodeConfig = Schema.decodeUnknownEffect(McpConfig)

/** Returns the tools of a server, for the `tools` of an agent. */
export const tools = (options: McpOptions): Effect.Effect<ReadonlyArray<Tool>, AgentError> =>
  decodeConfig(options).pipe(
    Effect.mapError(({ message }) => failure(message.replace(/\s*\n\s*/g, "; "))),
    Effect.flatMap((config) => Effect.flatMap(McpServers, (servers) => servers.tools(config))),
  )

/** Returns what a server would do that needs the user's trust, such as starting a program; undefined if nothing does. */
const trustRequest = (
  { command, args, env: variables, cwd, url, tokenVariable }: McpConfig,
  place: string,
): TrustRequest | undefined => {
  if (command !== null) {
    const program = { command: [command, ...args], cwd: cwd ?? undefined, variables, input: null }
    return { _tag: "ProgramStart", place, ...program }
  }
  // Also on this computer: the model chooses what the tools of such a server do.
  if (url === null) return undefined
  return { _tag: "Sending", place, variable: tokenVariable, address: url }
}

/** Asks the service `Trust` about the servers in an agent's config, because the config may come from somebody else. */
export const permitTools = (
  sources: ReadonlyArray<typeof ToolSource.Type>,
  from: ConfigOrigin,
): Effect.Effect<void, ConfigError> =>
  Effect.forEach(
    sources,
    ({ mcp }) => {
      const request = trustRequest(mcp, placeOf(from, "tools"))
      if (request === undefined) return Effect.void
      return Effect.mapError(permit(request), ({ message }) => ConfigError.at(from, "tools", message))
    },
    { discard: true },
  )

/** Returns the tools of all servers in an agent's config. */
export const toolsOf = (
  sources: ReadonlyArray<typeof ToolSource.Type>,
): Effect.Effect<ReadonlyArray<Tool>, AgentError> =>
  Effect.flatMap(McpServers, (servers) =>
    Effect.map(
      Effect.forEach(sources, ({ mcp }) => servers.tools(mcp)),
      (lists) => lists.flat(),
    ),
  )
