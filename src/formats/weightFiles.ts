/** Finds the weights file of a model's folder in the order in which Hugging Face's `transformers` looks for it. */
import { Schema } from "effect"

/** The weights file of a folder cannot be determined. */
export class WeightFilesError extends Schema.TaggedError<WeightFilesError>()("WeightFilesError", {
  message: Schema.String,
}) {}

/** The endings of weights files in order of preference: an index of several files first, then safetensors before PyTorch. */
const endings = [".safetensors.index.json", ".bin.index.json", ".safetensors", ".bin", ".pt", ".pth"]

/** The usual names of weights files: the first two are Hugging Face's, and the third is used in our checkpoints. */
const usualNames = ["model", "pytorch_model", "weights"]

const isShard = (name: string): boolean => /-\d{5}-of-\d{5}\.[a-z]+$/.test(name)

/** Returns the name of the weights file among the names in a folder. Throws a `WeightFilesError`. */
export const weightFileIn = (names: ReadonlyArray<string>): string => {
  for (const ending of endings) {
    const candidates = names.filter((name) => name.endsWith(ending) && !isShard(name))
    const usual = usualNames.map((name) => `${name}${ending}`).find((name) => candidates.includes(name))
    if (usual !== undefined) return usual
    if (candidates.length === 1) return candidates[0]
    if (candidates.length > 1) {
      const message = `found ${candidates.join(", ")}, none of them named ${usualNames.join(" or ")}; give the path of one file`
      throw new WeightFilesError({ message })
    }
  }
  const firstNames = names.slice(0, 10).join(", ")
  throw new WeightFilesError({ message: `expected a file of weights, ${endings.join(" or ")}; found ${firstNames}` })
}
