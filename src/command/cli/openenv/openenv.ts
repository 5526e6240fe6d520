/** Defines the subcommand `effect openenv`, which serves an env or tasks by OpenEnv's protocol. */
import { randomBytes } from "node:crypto"
import { Effect, Option } from "effect"
import { isLoopback } from "../../../base/trust/hostGuard.ts"
import { checkAllowHost, subcommand } from "../flags.ts"
import { usageError } from "../output/output.ts"
import { flags } from "./flags.ts"

export const openenv = subcommand(
  "openenv",
  {
    description:
      "Serve an env or the tasks of a data set by OpenEnv's protocol, so that its clients can play them. Each client has a " +
      "session of its own. Ctrl-C ends all sessions.",
    examples: {
      "effect openenv CartPole-v1": "Serve an env at http://127.0.0.1:8000",
      "effect openenv arithmetic --set num_tasks=1000": "Serve the tasks of a data set",
      "effect openenv experiment.yaml": "Serve the data set or the env of a file",
      "effect openenv CartPole-v1 --host 0.0.0.0": "Let other machines connect; prints an address with a key",
    },
  },
  flags,
  Effect.fnUntraced(function* (input) {
    yield* checkAllowHost(input.allowHost)
    const typed = Option.getOrUndefined(input.key)
    // The key can be the beginning of a path.
    if (typed !== undefined && !/^[\w-]{8,}$/.test(typed))
      return yield* usageError("--key: expected at least 8 letters, digits, - or _")
    const key = typed ?? (isLoopback(input.host) ? undefined : randomBytes(18).toString("base64url"))
    // The server is loaded only here, so that the other subcommands start fast.
    const { serveEnv } = yield* Effect.promise(() => import("./serveEnv.ts"))
    yield* Effect.scoped(serveEnv(input, key))
  }),
)
