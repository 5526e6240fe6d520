import { stream } from "../../src/base/rng/Rng.ts"
import { defineBench } from "../Bench.ts"

const draws = 65_536

export default defineBench({
  name: "philox-uniform",
  unit: "ns a draw",
  higherIsBetter: false,
  about: "Uniform floats, filled into an array",
  run: async ({ time }) => {
    const random = stream(1, "bench")
    const out = new Float32Array(draws)
    const perDraw = (work: () => unknown): number => (time(work).seconds / draws) * 1e9
    return {
      value: perDraw(() => random.fillUniform(out)),
      details: {
        "one by one": perDraw(() => {
          let sum = 0
          for (let draw = 0; draw < draws; draw++) sum += random.uniform()
          return sum
        }),
        normal: perDraw(() => random.fillNormal(out)),
      },
    }
  },
})
