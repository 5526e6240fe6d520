/**
 * Declares the config of a multi-run trainer: the model that all runs share, the batches and adapters of the trainer, the
 * engine that generates, and the first runs. More runs can be added while the trainer works, as further folders `run_*`.
 *
 * @example
 * ```yaml
 * kind: multirun
 * name: reverse-text
 * model: { type: scratch, hidden_size: 64, layers: 2, heads: 4, tokenizer: { alphabet: "abc " } }
 * runs:
 *   letters: { train_dataset: { type: reverse_text }, max_steps: 100 }
 * ```
 */
import { Schema } from "effect"
import { isPlain, type Plain } from "../../base/config/Config.ts"
import { bounded, orDefault, positive, positiveBelow, runName, withDefault } from "../../base/config/fields.ts"
import { projections, usualInitializerRange } from "../../decoder/networks/Decoder.ts"
import { kindField } from "../../run/RunSpec.ts"
import { Address, Secret } from "../../base/config/secretFields.ts"
import { OutputSettings } from "../../agents/training/RuntimeConfig.ts"
import { Mixing } from "../batches/packUnits.ts"
import { RankStore } from "../ranks/rankStore.ts"

const Section = Schema.declare((value: unknown): value is Plain => isPlain(value), { expected: "a section" })

/** The name of a run, which is a part of its folder's name. */
const segment = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, {
    expected: "a name of letters, digits, dots, dashes and underscores",
  }),
)

/** A model in a folder with Hugging Face's files. */
const FolderModel = Schema.Struct({
  /** The weights are read from a folder. */
  type: Schema.Literal("folder"),
  /** The folder, absolute or relative to the config's file. */
  path: Schema.NonEmptyString,
  /**
   * How the weights are held: `int8` holds the projections, the embedding and the head as bytes with a scale for each output,
   * about a quarter of the memory; adapters stay 32-bit floats. null holds all weights as 32-bit floats.
   */
  quantization: withDefault(Schema.NullOr(Schema.Literals(["int8"])), null),
})

/** The tokenizer of a model from scratch, whose tokens are characters or bytes. */
const TokenizerSettings = Schema.Struct({
  /** The characters of the vocabulary; null makes every byte a token, so that all texts can be written. */
  alphabet: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
  /** The chat template, in Jinja; null is ChatML. */
  template: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
})

/** A model whose weights are drawn at random, with the architecture of Llama. */
const ScratchModel = Schema.Struct({
  /** The weights are drawn at random. */
  type: Schema.Literal("scratch"),
  /** The number of units that represent a token. */
  hiddenSize: withDefault(bounded("modelUnits"), 64),
  /** The number of layers of attention and feed-forward network. */
  layers: withDefault(bounded("modelLayers"), 2),
  /** The number of attention heads; it divides `hidden_size`. */
  heads: withDefault(bounded("heads"), 4),
  /** The number of units in each feed-forward network; null is twice `hidden_size`. */
  intermediateSize: withDefault(Schema.NullOr(bounded("modelUnits")), null),
  /** The largest number of tokens of a prompt and its answer together. */
  maxPositions: withDefault(bounded("positions"), 256),
  /**
   * The standard deviation of the random weights. Small models learn faster with about 1 / √`hidden_size`. With adapters,
   * choose such a larger value, too: adapters cannot make the logits of the base model larger.
   */
  initializerRange: withDefault(positive, usualInitializerRange),
  /** The vocabulary, and how a conversation becomes a text. */
  tokenizer: withDefault(TokenizerSettings, {}),
})

/** The adapters of all runs; without them, all weights of the model are trained, for one run. */
const LoraSettings = Schema.Struct({
  /** The largest rank of a run's adapter. */
  rank: withDefault(bounded("adapterRank"), 8),
  /** The alpha of runs that set none: an adapter's output is scaled by alpha / rank. */
  alpha: withDefault(positive, 16),
  /** The projections that have an adapter, in every layer. */
  targets: withDefault(Schema.NonEmptyArray(Schema.Literals(projections)), [...projections]),
})

const TrainerSettings = Schema.Struct({
  /**
   * Where gradients are computed, and where the adapters are: in this process (`local`), or on a server of Tinker's protocol
   * (`tinker`), which also generates.
   */
  type: withDefault(Schema.Literals(["local", "tinker"]), "local"),
  /** The address of the server, such as `http://127.0.0.1:8000`; only with `type: tinker`. */
  baseUrl: withDefault(Schema.NullOr(Address), null),
  /** The environment variable with the server's key, written as `${NAME}`; only with `type: tinker`. null sends no key. */
  apiKey: withDefault(Schema.NullOr(Secret), null),
  /** The server's name of the model; only with `type: tinker`. null takes the name of the model's folder. */
  baseModel: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
  /** The number of processes that compute gradients at the same time; it does not change the result. */
  ranks: withDefault(bounded("ranks"), 1),
  /** How the ranks exchange their gradients: by files, or through a Redis server. One rank needs neither. */
  store: withDefault(RankStore, { type: "files" }),
  /**
   * The seconds after which a rank that does not answer counts as lost, for example because its process was stopped. It must
   * be longer than the longest step, in which programs may be compiled. A rank whose process ends is noticed at once.
   */
  rankDeadline: withDefault(positiveBelow("seconds"), 120),
  /** The number of runs that are trained at the same time; others wait. It is 1 if `lora` is null. */
  maxRuns: withDefault(bounded("adapters"), 1),
  /** The number of windows of a micro-batch. */
  rows: withDefault(bounded("tokenRows"), 8),
  /**
   * The number of tokens of a window, which is the most that a sample may have. Samples share the first tokens of their
   * prompts in a window, so a window that has room for a whole group saves computation.
   */
  width: withDefault(bounded("positions"), 256),
  /**
   * The number of tokens of a block, which all belong to one run; it divides `width`. If it is left out and `width` is no
   * multiple of 32, it is the largest number that divides both.
   */
  block: withDefault(bounded("positions"), 32),
  /** Whether samples share the first tokens of their prompts in a window. With `type: tinker`, they never do. */
  sharePrompts: withDefault(Schema.Boolean, true),
  /**
   * Whether a micro-batch holds samples of one run, so that every run computes the same bits as if it were trained alone, or
   * of several runs.
   */
  mixing: withDefault(Mixing, "one-run"),
  /** The adapters, so that several runs share the model; null trains all weights of the model, for one run. */
  lora: withDefault(Schema.NullOr(LoraSettings), null),
  /**
   * Whether the log-probabilities of the reference model, which a KL term needs, are computed in a thread of their own while
   * the trainer computes gradients. The thread holds a second copy of the model, and changes no results. null uses a thread
   * if `max_runs` is more than 1 and `ranks` is 1.
   */
  referenceThread: withDefault(Schema.NullOr(Schema.Boolean), null),
  /**
   * Whether gradients are computed with the experts that the model chose while it sampled (router replay), so that importance
   * ratios compare the same experts. Only models with experts, such as Qwen3-MoE, can do it.
   */
  enableRouterReplay: withDefault(Schema.Boolean, false),
})

/** The settings of the engine. */
export const InferenceSettings = Schema.Struct({
  /** The numbers of answers for which a program is compiled; the largest is the most that are generated at once. */
  generating: withDefault(Schema.NonEmptyArray(bounded("tokenRows")), [1, 8, 64]),
  /** The numbers of prompts for which a program that reads a page of each is compiled. */
  reading: withDefault(Schema.NonEmptyArray(bounded("tokenRows")), [1, 8]),
  /** The number of tokens in a page of the cache of prompts. */
  pageSize: withDefault(bounded("page"), 16),
  /**
   * Whether the engine works in a thread of its own, so that it generates for some runs while others are trained. null uses a
   * thread if `max_runs` is more than 1.
   */
  ownThread: withDefault(Schema.NullOr(Schema.Boolean), null),
})

const BroadcastSettings = Schema.Struct({
  /** The number of a run's newest weights to keep in `broadcast/step_N`, for other programs; 0 writes none. */
  keep: withDefault(bounded("keptOrNone"), 2),
})

/** The config of a multi-run trainer. */
export const MultiRunConfig = Schema.Struct({
  /** The kind of run: many runs in one trainer of a language model. */
  kind: kindField("multirun"),
  /** The name of the folder in which the trainer is saved, below the results folder. */
  name: withDefault(runName, "multirun"),
  /** A description that is saved with the trainer; null writes one. */
  description: withDefault(Schema.NullOr(Schema.String), null),
  /** The seed of the model's random weights and adapters, and of the runs that have no seed of their own. */
  seed: orDefault(bounded("seed"), 0),
  /** The model that all runs share. */
  model: Schema.Union([FolderModel, ScratchModel]),
  /** How samples become micro-batches, and whether runs have adapters. */
  trainer: withDefault(TrainerSettings, {}),
  /** The engine that generates answers. */
  inference: withDefault(InferenceSettings, {}),
  /** The weights that are written for other programs. */
  broadcast: withDefault(BroadcastSettings, {}),
  /**
   * Where the orchestrators of the runs work: in this process, together with an engine, or in other processes (`effect
   * orchestrate` and `effect serve`), so that this process only trains.
   */
  orchestrators: withDefault(Schema.Literals(["inside", "outside"]), "inside"),
  /** The runs by name; `letters` becomes the folder `run_letters`. Each has the keys of an `orch.yaml`. */
  runs: Schema.Record(segment, Section),
  /** Where results are saved, and how much is logged. */
  output: orDefault(OutputSettings, {}),
})
export type MultiRunConfig = typeof MultiRunConfig.Type
