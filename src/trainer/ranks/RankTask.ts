import { Schema } from "effect"
import { positiveInt } from "../../base/config/fields.ts"
import { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { StorePlace } from "./rankStore.ts"

const { model, trainer, seed } = MultiRunConfig.fields

/** The task of a rank's process: all settings that it needs. */
export const RankTask = Schema.Struct({
  /** The number of this rank, from 1. */
  rank: positiveInt,
  model,
  trainer,
  seed,
  /** The folder that the path of the model starts from. */
  baseDir: Schema.String,
  /** The folder that holds the folders of the runs. */
  outputDirectory: Schema.String,
  /** The address of the store through which the ranks exchange values. */
  store: StorePlace,
})
export type RankTask = typeof RankTask.Type
