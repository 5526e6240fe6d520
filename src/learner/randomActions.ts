import type { Space } from "../env/Space.ts"
import type { Stream } from "../rng/Rng.ts"

/** Fills a batch's actions with uniform draws from a space, or with standard normal ones where it has no bounds. */
export const randomActions = (space: Space, random: Stream, out: Float32Array | Int32Array): void => {
  if (space._tag === "Discrete") {
    for (let at = 0; at < out.length; at++) out[at] = random.integer(space.n)
    return
  }
  const { low, high } = space
  for (let at = 0, element = 0; at < out.length; at++) {
    const bounded = Number.isFinite(low[element]) && Number.isFinite(high[element])
    out[at] = bounded ? random.between(low[element], high[element]) : random.normal()
    element = element + 1 === low.length ? 0 : element + 1
  }
}
