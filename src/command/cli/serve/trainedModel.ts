/**
 * Opens the model that a trainer trains. The sizes come from the trainer's config, so that the model generates the same
 * answers.
 */
import { totalmem } from "node:os"
import { basename, join } from "node:path"
import { Context, Effect, Layer, Option } from "effect"
import { Engine } from "../../../decoder/inference/Engine.ts"
import { type OpenedDecoder, readersOf } from "../../../decoder/engine/openDecoder.ts"
import { byName } from "../../../agents/lm/toolFormats/ToolFormats.ts"
import { openBaseModel } from "../../../trainer/baseModel.ts"
import { runsIn, type TrainerFolder } from "../../../trainer/trainerFolder.ts"
import { usageError } from "../output/output.ts"
import { checkSizes } from "./checkSizes.ts"
import type { ServeFlags } from "./flags.ts"

/** The model of a trainer. */
interface TrainerModel {
  readonly trainer: TrainerFolder
  readonly name: string
  /**
   * The folder in which broadcasts of the model appear: the trainer's folder with all of its runs, or the folder of one run.
   */
  readonly watch: string
}

/** Chooses the runs whose weights are served. With adapters, all runs can be served; without adapters, there is one model. */
export const trainedModel = Effect.fnUntraced(function* (trainer: TrainerFolder, named: string) {
  const { directory, settings, run } = trainer
  if (settings.trainer.lora !== null) {
    const name = settings.model.type === "folder" ? basename(settings.model.path) : "base"
    const found: TrainerModel = { trainer, name, watch: run === null ? directory : join(directory, run) }
    return found
  }
  const runs = run === null ? yield* runsIn(directory) : [run]
  if (runs.length !== 1) {
    const choices = runs.map((one) => join(named, one)).join(", ") || "there is none"
    return yield* usageError(
      `${named}: expected one run, because the runs share no model; name one of them: ${choices}`,
    )
  }
  const found: TrainerModel = { trainer, name: runs[0], watch: join(directory, runs[0]) }
  return found
})

/**
 * Opens the model with the weights with which the trainer began. Flags that the user typed replace the trainer's settings.
 */
export const openTrained = Effect.fnUntraced(function* ({ trainer, name, watch }: TrainerModel, input: ServeFlags) {
  const { directory, settings } = trainer
  const { inference, trainer: sizes } = settings
  const { model: trained } = settings
  if (Option.isSome(input.quantization) && trained.type === "scratch")
    return yield* usageError("--quantization: expected a trainer whose model is in a folder, found one from scratch")
  const quantization = Option.getOrUndefined(input.quantization)
  const chosen = trained.type === "scratch" || quantization === undefined ? trained : { ...trained, quantization }
  const base = yield* openBaseModel(chosen, { baseDir: directory, seed: settings.seed })
  yield* checkSizes(input, base.decoder)
  const runs = yield* runsIn(directory)
  const slots = Option.getOrUndefined(input.slots)
  const { lora } = sizes
  // A new version of an adapter needs a slot while the old version is in use.
  const places = Math.max(
    Option.getOrElse(input.maxAdapters, () => Math.max(sizes.maxRuns, runs.length) + 1),
    input.adapter.length + 1,
  )
  const model = {
    ...base,
    config: base.decoder,
    name: Option.getOrElse(input.name, () => name),
    generating: slots === undefined ? inference.generating : [...inference.generating.filter((n) => n < slots), slots],
    reading: inference.reading,
    embeddings: true,
    routedExperts: sizes.enableRouterReplay || input.routedExperts,
    mostBytes: totalmem(),
    pageSize: Option.getOrElse(input.pageSize, () => inference.pageSize),
    maxLength: Option.getOrElse(input.maxModelLen, () => Math.min(base.decoder.maxPositions, sizes.width)),
    ...(lora === null
      ? {}
      : {
          adapters: {
            slots: places,
            shape: { ...lora, rank: Option.getOrElse(input.maxLoraRank, () => lora.rank) },
          },
        }),
  }
  const { toolFormat } = input
  const format = toolFormat === "none" ? null : toolFormat === "auto" ? base.chat.toolFormat : byName[toolFormat]
  const opened: OpenedDecoder = {
    name: model.name,
    engine: Context.get(yield* Layer.build(Engine.layer(model)), Engine),
    chat: { ...base.chat, toolFormat: format },
    ...readersOf(base.decoder, lora?.targets ?? []),
  }
  return { model: opened, watch: [watch], maxAdapters: lora === null ? 0 : places }
})
