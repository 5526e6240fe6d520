/**
 * Lists the names of the files in a model's folder, as Hugging Face's libraries write them. `shards.ts` names the files
 * of weights that are split.
 */
export const modelFiles = {
  /** The architecture and sizes of a model. */
  config: "config.json",
  /** The defaults of generation, such as the ids that end it. */
  generationConfig: "generation_config.json",
  weights: "model.safetensors",
  tokenizer: "tokenizer.json",
  tokenizerConfig: "tokenizer_config.json",
  chatTemplate: "chat_template.jinja",
  /** The names of the special tokens, which older programs write a second time. */
  specialTokens: "special_tokens_map.json",
  /** The description of an adapter in peft's format: which projections it changes, the rank of its matrices, and its scale. */
  adapterConfig: "adapter_config.json",
  adapterWeights: "adapter_model.safetensors",
  /** The matrices of an adapter as a PyTorch file, which older versions of peft write. */
  olderAdapterWeights: "adapter_model.bin",
} as const

/** Returns the path of a file in a folder; the folder `.` is the root. */
export const inFolder = (folder: string, name: string): string =>
  folder === "" || folder === "." ? name : `${folder.replace(/\/$/, "")}/${name}`
