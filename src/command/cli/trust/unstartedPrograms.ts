/** Provides services that don't start the programs that a config names, for `--dry-run`. */
import { Effect, Layer } from "effect"
import { McpServers } from "../../../agents/agent/Mcp.ts"
import { ForeignEnvs } from "../../../rl/env/foreign/options.ts"
import { unstartedEnvs } from "../../../rl/env/foreign/unstarted.ts"
import { TextPrograms } from "../../../agents/task/foreign/TextPrograms.ts"
import { OpenEnvServers } from "../../../spread/openenv/OpenEnvServers.ts"
import { invalid } from "../../../base/EnvError.ts"
import { allowAll, Trust } from "../../../base/trust/Trust.ts"

/** The number of tasks that a program is assumed to have, since only the started program could report it. */
const assumedTasks = 1_000_000

export const unstartedPrograms = Layer.mergeAll(
  Layer.succeed(Trust, allowAll),
  Layer.succeed(ForeignEnvs, unstartedEnvs),
  Layer.succeed(TextPrograms, {
    open: ({ id }) =>
      Effect.succeed({
        description: { protocol: 1, tasks: assumedTasks },
        lend: Effect.fail(invalid(id, "its program was not started")),
      }),
  }),
  Layer.succeed(OpenEnvServers, {
    open: ({ id }) =>
      Effect.succeed({
        actions: {},
        observations: {},
        begin: () => Effect.fail(invalid(id, "its server was not asked")),
      }),
  }),
  Layer.succeed(McpServers, { tools: () => Effect.succeed([]) }),
)
