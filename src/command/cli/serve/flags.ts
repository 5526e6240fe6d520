/** Defines the flags of `effect serve`. */
import * as Flag from "effect/cli/Flag"
import { formatNames } from "../../../agents/lm/toolFormats/ToolFormat.ts"
import {
  allowHostFlag,
  argument,
  backendFlag,
  hostFlag,
  number,
  portFlag,
  text,
  texts,
  threadsFlag,
  toggle,
  type FlagValues,
} from "../flags.ts"

export const flags = {
  model: argument(
    "model",
    "A folder with a model (config.json), or a trainer's folder or one of its runs, whose newest weights are served",
  ),
  port: portFlag(8000),
  host: hostFlag("an API key"),
  apiKey: text(
    "api-key",
    "key",
    "The key that clients must send (default: if --host needs one, a new one is made and printed)",
  ),
  allowHost: allowHostFlag,
  name: text(
    "name",
    "name",
    "The model's name for clients (default: its folder's name; for a trainer, that of its base model or run)",
  ),
  backend: backendFlag("Where the model computes (default: auto)"),
  threads: threadsFlag,
  adapter: texts("adapter", "name=path", "Load an adapter in peft's format under this name; can be repeated"),
  merge: text(
    "merge",
    "path",
    "Merge an adapter in peft's format into the model's weights; also one with DoRA or modules_to_save",
  ),
  watch: texts(
    "watch",
    "dir",
    "Load each new broadcast of a run, or of all runs in a trainer's folder, under the run's name; can be repeated",
  ),
  adapters: texts(
    "adapters",
    "dir",
    "Let clients load adapters from this folder, besides those of the model, --adapter and --watch; can be repeated",
  ),
  replaceAdapters: toggle(
    "replace-adapters",
    "Let clients also replace and unload adapters of --adapter and --watch (default: only those that clients have loaded)",
  ),
  maxAdapters: number(
    "max-adapters",
    "adaptersOrNone",
    "The most adapters at the same time (default: one more than the trainer's runs, or 8 with --adapter or --watch)",
  ),
  maxLoraRank: number(
    "max-lora-rank",
    "adapterRank",
    "The largest rank of an adapter (default: the trainer's setting, or 16)",
  ),
  maxModelLen: number(
    "max-model-len",
    "positions",
    "The most tokens of a prompt and its answer (default: the trainer's setting, or the model's, up to 2048)",
  ),
  slots: number(
    "slots",
    "tokenRows",
    "The most answers that are generated in one step (default: the trainer's setting, or 32)",
  ),
  pageSize: number(
    "page-size",
    "page",
    "The number of tokens in a page of the cache (default: the trainer's setting, or 16)",
  ),
  maxRequests: number(
    "max-requests",
    "requests",
    "The most answers at the same time, with those that wait (default: 1024)",
  ),
  quantization: Flag.Literals("quantization", ["int8"]).pipe(
    Flag.optional,
    Flag.withDescription(
      "Hold large matrices as bytes, in a quarter of the memory (default: the trainer's setting, or 32-bit floats)",
    ),
  ),
  tinker: toggle(
    "tinker",
    "Also answer Tinker's protocol under /api/v1: clients train adapters of the model, and sample from them",
  ),
  tinkerDir: text(
    "tinker-dir",
    "dir",
    "With --tinker: the folder of the clients' models and checkpoints (default: results/tinker)",
  ),
  tinkerKeys: text(
    "tinker-keys",
    "file",
    "With --tinker: a YAML file with the API key of each client by the client's name, instead of one key for all",
  ),
  seed: number(
    "seed",
    "seed",
    "With --tinker: the seed of adapters and samples for which clients set none (default: 0)",
  ),
  toolFormat: Flag.Literals("tool-format", ["auto", "none", ...formatNames]).pipe(
    Flag.withDefault("auto" as const),
    Flag.withDescription("How the model writes calls of tools (default: auto, as its chat template shows)"),
  ),
  pooling: Flag.Literals("pooling", ["mean", "last"]).pipe(
    Flag.withDefault("mean" as const),
    Flag.withDescription(
      "How hidden states become an embedding: their mean, or that of the last token (default: mean)",
    ),
  ),
  routedExperts: toggle(
    "enable-return-routed-experts",
    "Return the experts that the model chose for each token, to clients that ask for token ids (default: as the trainer's config says)",
  ),
  verbose: toggle("verbose", "Print a line for each step that is loaded, not only for the first of each run"),
  json: toggle("json", "Print the address and the model as one line of JSON"),
}

export type ServeFlags = FlagValues<typeof flags>
