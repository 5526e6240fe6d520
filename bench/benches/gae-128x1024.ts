import { gae } from "../../src/rl/returns/gae.ts"
import { stream } from "../../src/base/rng/Rng.ts"
import { defineBench } from "../Bench.ts"

const steps = 128
const numEnvs = 1024
const rows = steps * numEnvs

export default defineBench({
  name: "gae-128x1024",
  unit: "µs",
  higherIsBetter: false,
  about: "GAE over 128 steps of 1,024 envs, against copying the bytes that it reads and writes",
  run: async ({ ratio, time }) => {
    const random = stream(1, "bench")
    const floats = (length: number): Float32Array => {
      const out = new Float32Array(length)
      random.fillNormal(out)
      return out
    }
    const flags = (share: number): Uint8Array =>
      Uint8Array.from({ length: rows }, () => Number(random.uniform() < share))
    const [rewards, values, truncatedValues] = [floats(rows), floats(rows), floats(rows)]
    const [terminated, truncated] = [flags(0.02), flags(0.005)]
    const out = new Float32Array(rows)
    const targets = new Float32Array(rows)
    const inputs = { rewards, values, lastValues: floats(numEnvs), terminated, gamma: 0.99, lambda: 0.95, out }

    const copies = [rewards, values, out].map((array) => new Float32Array(array.length))
    const flagCopy = new Uint8Array(rows)
    const copy = (): void => {
      copies[0].set(rewards)
      copies[1].set(values)
      flagCopy.set(terminated)
      copies[2].set(out)
    }
    const against = ratio(() => gae(inputs), copy, { minimumSeconds: 2 })
    return {
      value: against.a.seconds * 1e6,
      details: {
        "copy µs": against.b.seconds * 1e6,
        "times the copy": against.ratio,
        "with targets µs": time(() => gae({ ...inputs, targets })).seconds * 1e6,
        "with truncation µs": time(() => gae({ ...inputs, truncated, truncatedValues })).seconds * 1e6,
      },
    }
  },
})
