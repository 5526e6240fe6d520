/** Defines the subcommand `effect gateway`, which records the calls of models by any agents. */
import { randomBytes } from "node:crypto"
import { Effect, Option } from "effect"
import { isLoopback } from "../../../base/trust/hostGuard.ts"
import { checkAllowHost, isBucket, subcommand } from "../flags.ts"
import { usageError } from "../output/output.ts"
import { flags } from "./flags.ts"

export const gateway = subcommand(
  "gateway",
  {
    description:
      "Pass the calls of language models by any agents on to a server, and record them as rollouts of a run. Agents use " +
      "http://127.0.0.1:8100/sessions/ID/v1 as the base URL of OpenAI's or Anthropic's clients. Ctrl-C ends all sessions.",
    examples: {
      "effect gateway --upstream openai": "Record the calls of OpenAI's models, with the key in OPENAI_API_KEY",
      "effect gateway --upstream http://127.0.0.1:8000/v1 --model base --tokens":
        "Record token ids and log-probabilities of a server's model",
      "effect gateway --upstream models/base": "Answer with a language model in a folder",
      "effect gateway --upstream openai --alias fast=gpt-4.1-nano --set lm_config.budget.tokens=1000000":
        "Let agents ask for a model as fast, and stop at a million tokens",
    },
  },
  flags,
  Effect.fnUntraced(function* (input) {
    yield* checkAllowHost(input.allowHost)
    const typed = Option.getOrUndefined(input.key)
    if (typed === "") return yield* usageError("--key: expected a text, found an empty one")
    if (isBucket(input.resultsDir)) return yield* usageError("--results-dir: a gateway needs a folder of this machine")
    const key = typed ?? (isLoopback(input.host) ? undefined : randomBytes(18).toString("base64url"))
    // The server is loaded only here, so that the other subcommands start fast.
    const { runGateway } = yield* Effect.promise(() => import("./runGateway.ts"))
    yield* runGateway(input, key)
  }),
)
