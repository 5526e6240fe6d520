import { isPlain } from "../config/Config.ts"

/** Whether a config is of an evaluation, and not of something that is trained. */
export const isEvaluation = (config: unknown): boolean => isPlain(config) && "dataset" in config
