/** Defines the subcommand `effect serve`, which serves a language model with OpenAI's API. */
import { randomBytes } from "node:crypto"
import { Effect, Option } from "effect"
import { isLoopback } from "../../../base/trust/hostGuard.ts"
import { backend } from "../../../node.ts"
import { checkAllowHost, sessionOptions, subcommand } from "../flags.ts"
import { usageError } from "../output/output.ts"
import { flags } from "./flags.ts"

export const serve = subcommand(
  "serve",
  {
    description:
      "Serve a language model over HTTP by OpenAI's protocol: chat and text completions, whole or streamed, tools, " +
      "log-probabilities, token ids and adapters. Ctrl-C finishes the answers that have begun; a second one ends at once.",
    examples: {
      "effect serve models/SmolLM2-135M-Instruct": "Serve a model of Hugging Face at http://127.0.0.1:8000/v1",
      "effect serve models/base --adapter poet=adapters/poet":
        "Serve a model and an adapter, which clients name as poet",
      "effect serve models/base --watch runs/experiment": "Load each adapter that the runs of a trainer broadcast",
      "effect serve models/base --host 0.0.0.0": "Let other machines connect; prints the API key",
    },
  },
  flags,
  Effect.fnUntraced(function* (input) {
    yield* checkAllowHost(input.allowHost)
    const options = yield* sessionOptions(input)
    const typed = Option.getOrUndefined(input.apiKey)
    if (typed === "") return yield* usageError("--api-key: expected a text, found an empty one")
    const apiKey =
      typed ??
      // With keys for Tinker's clients, nobody without a key may sample from their weights by OpenAI's protocol.
      (isLoopback(input.host) && Option.isNone(input.tinkerKeys)
        ? undefined
        : `${input.tinker ? "tml-" : ""}${randomBytes(18).toString("base64url")}`)
    // The server and the model are loaded only here, so that the other subcommands start fast.
    const { serveModel } = yield* Effect.promise(() => import("./serveModel.ts"))
    yield* Effect.scoped(Effect.provide(serveModel(input, apiKey), backend(input.backend, options)))
  }),
)
