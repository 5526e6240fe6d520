import { ConfigProvider, Effect, Layer } from "effect"
import type { AgentError } from "../../../../src/agents/agent/AgentError.ts"
import * as Mcp from "../../../../src/agents/agent/Mcp.ts"
import type { Tool } from "../../../../src/agents/agent/Tool.ts"
import { httpClient, mcpServers } from "../../../../src/node.ts"
import { disk } from "../../../run/store/disk.ts"

export const platform = Layer.mergeAll(disk, Layer.provide(mcpServers, Layer.merge(disk, httpClient)))

export const variables = (values: Readonly<Record<string, string>>) =>
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(values))

export const call = (tools: ReadonlyArray<Tool>, name: string, given: object) => {
  const tool = tools.find(({ spec }) => spec.name === name)
  if (tool === undefined) throw new Error(`there is no ${name}`)
  return Effect.map(tool.call({ id: "1", name, arguments: JSON.stringify(given) }), ({ content, isError }) => [
    content,
    isError,
  ])
}

export const problem = (options: Mcp.McpOptions): Effect.Effect<string, unknown> =>
  Effect.map(Effect.flip(Mcp.tools(options)), ({ message }: AgentError) => message)
