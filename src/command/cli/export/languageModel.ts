/** Writes the language model of a trainer's run to a folder, for `effect export RUN --to adapter` and `--to model`. */
import { Effect, type Option } from "effect"
import * as Adapter from "../../../decoder/huggingFace/Adapter.ts"
import { filesOfModel, findModel, openModel } from "../../../trainer/weights/SavedModel.ts"
import { usageError } from "../output/output.ts"
import { requireNewFolder, writeFolder } from "./folder.ts"

/** The formats of language models: an adapter in the format of peft, or a whole model in the layout of Hugging Face. */
export type ModelFormat = "adapter" | "model"

interface ModelExport {
  /** The folder of a run, or any other folder with a model. */
  readonly from: string
  readonly format: ModelFormat
  readonly step: Option.Option<number>
  readonly out: Option.Option<string>
}

/** Writes the adapter or the whole model, and returns the path of the new folder. */
export const exportModel = Effect.fnUntraced(function* ({ from, format, step, out }: ModelExport) {
  const place = yield* findModel(from, step._tag === "Some" ? step.value : undefined)
  const folder = out._tag === "Some" ? out.value : `${place.name}-${format}`
  yield* requireNewFolder(folder)
  const model = yield* openModel(place)
  const { base, adapter } = model
  if (format === "adapter" && adapter === null) {
    return yield* usageError(`--to adapter: ${from} has no adapter, because all weights are trained; use --to model`)
  }
  const files =
    format === "adapter" && adapter !== null
      ? yield* Adapter.filesOf(adapter, base.decoder)
      : yield* filesOfModel(model)
  yield* writeFolder(folder, files)
  return folder
})
