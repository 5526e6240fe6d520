/** Which file of a folder holds a model's weights, as `transformers` and its kin look for it. */
import { Schema } from "effect"

/** A folder of which nobody can say which file holds the weights. */
export class WeightFilesError extends Schema.TaggedError<WeightFilesError>()("WeightFilesError", {
  message: Schema.String,
}) {}

/** In this order: several files with an index before one, safetensors before PyTorch's own. */
const endings = [".safetensors.index.json", ".bin.index.json", ".safetensors", ".bin", ".pt", ".pth"]

/** What comes before the ending: the first two are Hugging Face's, the third is that of our checkpoints. */
const usualNames = ["model", "pytorch_model", "weights"]

const isShard = (name: string): boolean => /-\d{5}-of-\d{5}\.[a-z]+$/.test(name)

/** The name of the file among those of a folder. Throws a WeightFilesError. */
export const weightFileIn = (names: ReadonlyArray<string>): string => {
  for (const ending of endings) {
    const candidates = names.filter((name) => name.endsWith(ending) && !isShard(name))
    const usual = usualNames.map((name) => `${name}${ending}`).find((name) => candidates.includes(name))
    if (usual !== undefined) return usual
    if (candidates.length === 1) return candidates[0]
    if (candidates.length > 1) {
      const message = `it holds ${candidates.join(", ")}, of which none is named ${usualNames.join(" or ")}; name the file`
      throw new WeightFilesError({ message })
    }
  }
  const found = names.slice(0, 10).join(", ")
  throw new WeightFilesError({ message: `expected a file of weights, ${endings.join(" or ")}; found ${found}` })
}
