import type { EngineModel } from "../../decoder/inference/Engine.ts"
import type { BaseModel } from "../baseModel.ts"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"

/**
 * Returns the model and the sizes of a trainer's engine, which are the same in every thread. The engine has room for one
 * adapter more than there are runs, so that new weights of a run can be loaded while the old ones still generate answers.
 */
export const engineModel = (
  { inference, trainer }: Pick<MultiRunConfig, "inference" | "trainer">,
  base: Pick<BaseModel, "decoder" | "weights" | "tokenizer" | "eosIds" | "name">,
): EngineModel => {
  const { decoder: config, weights, tokenizer, eosIds, name } = base
  const { generating, reading, pageSize } = inference
  const { lora, maxRuns, width, enableRouterReplay: routedExperts } = trainer
  const maxLength = Math.min(config.maxPositions, width)
  const adapters = lora === null ? {} : { adapters: { slots: maxRuns + 1, shape: lora } }
  const sizes = { generating, reading, pageSize, maxLength, routedExperts, ...adapters }
  return { name, config, weights, tokenizer, eosIds, ...sizes }
}
