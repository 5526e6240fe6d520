/** Writes a run as a folder for `wandb sync`, for `effect export RUN --to wandb`. */
import { join } from "node:path"
import { Effect, Option } from "effect"
import { variable } from "../../../base/config/variables.ts"
import { wandbFolder, type WandbLabels } from "../../trackers/wandb.ts"
import { usageError } from "../output/output.ts"
import { requireNewFolder, writeFolder } from "./folder.ts"
import { trackedRun } from "./trackedRun.ts"

/** Reads the labels of the run from the variables that W&B's own client reads. */
const labelsOf = Effect.gen(function* () {
  const labelOf = Effect.fnUntraced(function* (name: string) {
    return (yield* variable(`WANDB_${name}`)) || undefined
  })
  const labels: WandbLabels = {
    entity: yield* labelOf("ENTITY"),
    project: yield* labelOf("PROJECT"),
    id: yield* labelOf("RUN_ID"),
    name: yield* labelOf("NAME"),
    group: yield* labelOf("RUN_GROUP"),
    notes: yield* labelOf("NOTES"),
    tags: (yield* labelOf("TAGS"))?.split(",").map((tag) => tag.trim()),
  }
  return labels
})

/** Writes a run with its newest policy, or with the policy of a checkpoint, and returns the path of the new folder. */
export const toWandb = Effect.fnUntraced(function* (
  path: string,
  { step, out }: { readonly step: Option.Option<number>; readonly out: Option.Option<string> },
) {
  const run = yield* trackedRun(path, step, "wandb")
  const { name, files } = yield* Effect.mapError(wandbFolder(run, yield* labelsOf), ({ message }) =>
    usageError(`--to wandb: ${message}`),
  )
  const folder = Option.getOrElse(out, () => join("wandb", name))
  yield* requireNewFolder(folder)
  yield* writeFolder(folder, files)
  return folder
})
