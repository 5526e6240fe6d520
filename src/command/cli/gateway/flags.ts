/** Defines the flags of `effect gateway`. */
import * as Flag from "effect/cli/Flag"
import {
  allowHostFlag,
  hostFlag,
  number,
  portFlag,
  resultsDirFlag,
  text,
  texts,
  toggle,
  trustFlag,
  type FlagValues,
} from "../flags.ts"
import { alertFlag } from "../alerts/flag.ts"

export const flags = {
  upstream: text(
    "upstream",
    "server",
    "Where the models are: openai, anthropic, the address of a server, or a folder with a language model",
  ),
  protocol: Flag.Literals("protocol", ["openai", "anthropic"]).pipe(
    Flag.optional,
    Flag.withDescription("The protocol of a server whose address is given (default: openai)"),
  ),
  model: text(
    "model",
    "name",
    "The model that answers, whichever name an agent asks for (default: the model that it asks for)",
  ),
  alias: texts("alias", "name=model", "Let agents ask for a model by this name; can be repeated"),
  port: portFlag(8100),
  host: hostFlag("a key"),
  allowHost: allowHostFlag,
  key: text(
    "key",
    "key",
    "The key with which agents open sessions (default: if --host needs one, a new one is made and printed)",
  ),
  cache: Flag.Literals("cache", ["record", "replay", "off"]).pipe(
    Flag.optional,
    Flag.withDescription("Record the answers of the server in files, or answer only from these files (default: off)"),
  ),
  responses: Flag.Literals("responses", ["passed", "converted"]).pipe(
    Flag.optional,
    Flag.withDescription(
      "Pass requests of OpenAI's responses on, or convert them to chat completions (default: passed to OpenAI, else converted)",
    ),
  ),
  tokens: toggle(
    "tokens",
    "Ask the server for token ids and log-probabilities, which a training needs (default: only for a folder)",
  ),
  maxSessions: number("max-sessions", "atOnce", "The most sessions at the same time (default: 4096)"),
  maxCalls: number("max-calls", "entries", "The most calls of a session (default: 10000)"),
  idleSeconds: number("idle-seconds", "count", "End a session that makes no call for so many seconds (default: 3600)"),
  set: texts(
    "set",
    "key=value",
    "Set another setting, e.g. lm_config.budget.tokens=1000000 or lm_config.limits.concurrency=32; can be repeated",
  ),
  name: text("name", "name", "The name of the run (default: gateway)"),
  resultsDir: resultsDirFlag("The folder for the run's folder (default: results)"),
  resume: text("resume", "run", "Continue a gateway that was stopped or killed: its folder"),
  alert: alertFlag("the gateway", ""),
  trust: trustFlag,
  json: toggle("json", "Print the address and, at the end, the result as lines of JSON"),
}

export type GatewayFlags = FlagValues<typeof flags>
