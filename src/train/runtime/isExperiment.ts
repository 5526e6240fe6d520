import { isPlain } from "../../config/Config.ts"

/** Whether a config is about agents that talk, and not about a trainer. */
export const isExperiment = (config: unknown): boolean =>
  isPlain(config) &&
  ["agent", "runtime", "train_dataset", "trainDataset", "validation_dataset"].some((key) => key in config)
