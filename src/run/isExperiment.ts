import { isPlain } from "../config/Config.ts"

/** The keys that only configs of experiments have. */
export const experimentKeys = ["agent", "runtime", "train_dataset", "trainDataset", "validation_dataset"] as const

/** Whether a config is about agents that ask a language model, and not about a trainer. */
export const isExperiment = (config: unknown): boolean => isPlain(config) && experimentKeys.some((key) => key in config)
