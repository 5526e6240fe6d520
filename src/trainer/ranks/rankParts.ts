/**
 * Makes the parts of a trainer that every rank has: the trained weights, the runs, and the data loader. The master adds the
 * parts that only one process needs, such as generating and saving.
 */
import { Duration, type FileSystem, Layer, type Path } from "effect"
import type { BaseModel } from "../baseModel.ts"
import { DataLoader, type DataLoaderOptions } from "../batches/DataLoader.ts"
import { replayedExperts } from "../batches/routerReplay.ts"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { Runs } from "../runs/Runs.ts"
import type { Store } from "../store/Store.ts"
import { makeTrainedModel, type TrainedModel } from "../trainer/TrainedModel.ts"
import type { TrainerError } from "../TrainerError.ts"

interface RankPartsOptions<E, R> {
  readonly settings: Pick<MultiRunConfig, "trainer">
  readonly base: Pick<BaseModel, "decoder" | "weights">
  /** The folder that holds the folders of the runs. */
  readonly outputDirectory: string
  /** The number of this rank; 0 is the master. */
  readonly rank: number
  /** Connects this rank with the others. */
  readonly store: Layer.Layer<Store, E, R>
  /** Wraps every wait for samples; see `DataLoaderOptions`. */
  readonly waiting?: DataLoaderOptions["waiting"]
  /** The time between two searches for samples of all runs, by default 20 milliseconds; see `DataLoaderOptions`. */
  readonly pollInterval?: Duration.Input
}

interface RankParts<E, R> {
  readonly model: TrainedModel
  readonly services: Layer.Layer<DataLoader | Runs | Store, TrainerError | E, FileSystem.FileSystem | Path.Path | R>
}

/** Makes the parts of one rank. Except for `rank`, the options must be the same on all ranks. */
export const rankParts = <E, R>(options: RankPartsOptions<E, R>): RankParts<E, R> => {
  const { lora: sizes } = options.settings.trainer
  const { decoder: config, weights } = options.base
  const lora = sizes === null ? null : { shape: sizes, alpha: sizes.alpha }
  const model = makeTrainedModel({ config, weights, lora, maxRuns: maxRunsOf(options.settings) })
  return { model, services: rankServices(options) }
}

const maxRunsOf = ({ trainer: { lora, maxRuns } }: Pick<MultiRunConfig, "trainer">): number =>
  lora === null ? 1 : maxRuns

/** Makes the parts of one rank that do not need the weights of the model. */
export const rankServices = <E, R>(
  options: Omit<RankPartsOptions<E, R>, "base"> & { readonly base: Pick<BaseModel, "decoder"> },
): RankParts<E, R>["services"] => {
  const { settings, base, outputDirectory, rank, store, waiting, pollInterval = 20 } = options
  const { trainer: sizes } = settings
  const maxRuns = maxRunsOf(settings)
  const rankDeadline = Duration.seconds(sizes.rankDeadline)
  const loader = DataLoader.layer({
    ...sizes,
    vocabSize: base.decoder.vocabSize,
    replayed: replayedExperts(sizes, base.decoder),
    timeout: 0,
    pollInterval,
    syncInterval: 200,
    deadline: rankDeadline,
    ...(waiting === undefined ? {} : { waiting }),
  })
  const runs = Runs.layer({
    outputDirectory,
    maxConcurrentRuns: maxRuns,
    rank,
    ranks: sizes.ranks,
    rankDeadline,
    pollInterval: "200 millis",
  })
  return loader.pipe(Layer.provideMerge(runs), Layer.provideMerge(store))
}
