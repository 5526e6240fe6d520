import { stream } from "../../src/base/rng/Rng.ts"
import { defineBench } from "../Bench.ts"

export default defineBench({
  name: "permutation-512",
  unit: "µs",
  higherIsBetter: false,
  about: "The order of the rows of one epoch, 4 envs by 128 steps",
  run: async ({ time }) => {
    const random = stream(1, "bench")
    const out = new Int32Array(512)
    return { value: time(() => random.permutation(out)).seconds * 1e6 }
  },
})
