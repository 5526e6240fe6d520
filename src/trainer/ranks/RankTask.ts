import { Schema } from "effect"
import { positiveInt } from "../../base/config/fields.ts"
import { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { StorePlace } from "./rankStore.ts"

const { model, trainer, seed } = MultiRunConfig.fields

/** Everything that the process of a rank has to know. */
export const RankTask = Schema.Struct({
  /** This rank, from 1. */
  rank: positiveInt,
  model,
  trainer,
  seed,
  /** The folder that the path of the model starts from. */
  baseDir: Schema.String,
  /** The folder that holds the folders of the runs. */
  outputDirectory: Schema.String,
  /** The place where the ranks exchange values. */
  store: StorePlace,
})
export type RankTask = typeof RankTask.Type
